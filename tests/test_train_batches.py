"""The plan: one task a step, nothing lost in silence, the same list for any number of ranks, a new order each epoch."""

from collections import Counter

import numpy as np
import pytest

from medi.errors import MediError
from medi.train.batches import Plan, PlanParams, TaskRows, plan, rows_seen, shares

# The rows A A A A A B B B A A C of the reference's case, as a release holds them: task by task.
REFERENCE = {"A": 7, "B": 3, "C": 1}


def tasks_of(sizes: dict[str, int], negatives: int = 1, group: str = "") -> list[TaskRows]:
    firsts = np.cumsum([0, *sizes.values()])
    rows = zip(sizes.items(), firsts, strict=False)
    return [TaskRows(name, group or name, int(first), np.full(size, negatives)) for (name, size), first in rows]


def rows_by_task(tasks: list[TaskRows], planned: Plan) -> dict[str, int]:
    counts = Counter({task.name: 0 for task in tasks})
    for step in planned.steps:
        task = tasks[step.task]
        assert ((task.first_row <= step.rows) & (step.rows < task.first_row + len(task.negatives))).all()
        counts[task.name] += len(step.rows)
    return dict(counts)


@pytest.mark.parametrize(
    ("batch_rows", "kept", "lost"),
    [(1, REFERENCE, {}), (2, {"A": 6, "B": 2, "C": 0}, {"A": 1, "B": 1, "C": 1}),
     (4, {"A": 4, "B": 0, "C": 0}, {"A": 3, "B": 3, "C": 1})],
)  # fmt: skip
def test_dropping_remainders_loses_what_each_task_has_over(batch_rows: int, kept: dict, lost: dict) -> None:
    for order in (["A", "B", "C"], ["C", "A", "B"]):
        tasks = tasks_of({name: REFERENCE[name] for name in order})
        planned = plan(tasks, PlanParams(batch_rows=batch_rows, remainder="drop"), epoch=0)
        assert rows_by_task(tasks, planned) == kept
        assert planned.dropped == {name: {"remainder": rows} for name, rows in lost.items()}
        assert {len(step.rows) for step in planned.steps} == {batch_rows}


@pytest.mark.parametrize("batch_rows", [1, 2, 4, 16])
def test_keeping_remainders_takes_every_row_once(batch_rows: int) -> None:
    tasks = tasks_of(REFERENCE)
    planned = plan(tasks, PlanParams(batch_rows=batch_rows), epoch=3)
    assert sorted(row for step in planned.steps for row in step.rows) == list(range(11))
    assert rows_by_task(tasks, planned) == REFERENCE and planned.dropped == {}
    assert len(planned.steps) == sum(-(-rows // batch_rows) for rows in REFERENCE.values())


def test_one_row_left_without_negatives_is_dropped_and_counted() -> None:
    planned = plan(tasks_of(REFERENCE, negatives=0), PlanParams(batch_rows=2), epoch=0)
    assert planned.dropped == {name: {"one row without negatives": 1} for name in REFERENCE}
    assert sorted(len(step.rows) for step in planned.steps) == [2, 2, 2, 2]


def test_steps_without_any_negative_are_dropped_where_they_are_all_there_is_forward() -> None:
    tasks = [TaskRows("A", "A", 0, np.array([0, 0, 0])), TaskRows("B", "B", 3, np.array([0, 1, 0]))]
    planned = plan(tasks, PlanParams(batch_rows=3, needs_negatives=True), epoch=0)
    assert planned.dropped == {"A": {"no negatives in the step": 3}}
    assert [sorted(step.rows) for step in planned.steps] == [[3, 4, 5]]


_GIVE = "give rows with negatives (and not --negatives 0)"


@pytest.mark.parametrize(
    ("params", "told"),
    [
        (PlanParams(batch_rows=8, remainder="drop"),
         "8 rows is left of 3 rows (remainder: 3); lower --batch-size, or give --remainder keep"),
        (PlanParams(batch_rows=1),
         f"1 row is left of 3 rows (one row without negatives: 3); raise --batch-size, or {_GIVE}"),
        (PlanParams(batch_rows=3, needs_negatives=True),
         f"3 rows is left of 3 rows (no negatives in the step: 3); {_GIVE}, or give --forward-candidates all"),
        (PlanParams(batch_rows=2, needs_negatives=True), "2 rows is left of 3 rows (no negatives in the step: 2, one"
         f" row without negatives: 1); {_GIVE}, or give --forward-candidates all"),
    ],
)  # fmt: skip
def test_a_run_is_refused_only_when_no_step_is_left_and_told_what_helps(params: PlanParams, told: str) -> None:
    with pytest.raises(MediError) as refused:
        plan(tasks_of({"A": 3}, negatives=0), params, epoch=0)
    assert str(refused.value) == f"no step of {told}"


@pytest.mark.parametrize("world", [1, 2, 3, 8])
def test_ranks_share_a_step_every_row_once_and_their_counts_differ_by_at_most_one(world: int) -> None:
    sizes = np.random.default_rng(world).integers(1, 500, 64)
    for rows in (1, 5, 64):
        parts = shares(sizes[:rows], world)
        assert len(parts) == world and sorted(np.concatenate(parts)) == list(range(rows))
        assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_ranks_have_as_much_to_do_as_each_other() -> None:
    assert [part.tolist() for part in shares(np.array([9, 8, 1, 2, 4, 4]), 2)] == [[0, 2, 5], [1, 3, 4]]
    assert [part.tolist() for part in shares(np.array([100, 1, 1, 1, 1]), 2)] == [[0, 3, 4], [1, 2]]
    assert [part.tolist() for part in shares(np.array([3, 1, 2]), 1)] == [[0, 1, 2]]


def test_epochs_and_seeds_differ_within_tasks_and_over_steps_and_equal_ones_do_not() -> None:
    tasks = tasks_of({"A": 40, "B": 40})

    def read(seed: int, epoch: int) -> list[tuple[int, list[int]]]:
        return [(step.task, step.rows.tolist()) for step in plan(tasks, PlanParams(seed, 8), epoch).steps]

    first, again, second, other = read(0, 0), read(0, 0), read(0, 1), read(1, 0)
    assert first == again
    assert len({str([task for task, _ in steps]) for steps in (first, second, other)}) == 3
    assert not {str(sorted(rows)) for _, rows in first} & {str(sorted(rows)) for _, rows in (*second, *other)}


def test_the_order_is_the_same_on_every_machine_and_a_task_does_not_see_the_others() -> None:
    alone = plan(tasks_of({"A": 9}), PlanParams(batch_rows=9), epoch=0).steps[0]
    assert alone.rows.tolist() == [7, 2, 4, 8, 1, 6, 5, 3, 0]
    beside = plan(tasks_of({"A": 9, "B": 5}), PlanParams(batch_rows=9), epoch=0).steps
    assert alone.rows.tolist() in [step.rows.tolist() for step in beside]


@pytest.mark.parametrize(
    ("sampling", "shares"),
    [("size", [0.9, 0.09, 0.01]), ("uniform", [1 / 3, 1 / 3, 1 / 3]), ("temperature", [0.706, 0.223, 0.074])],
)
def test_samplings_draw_data_sets_as_they_say(sampling: str, shares: list[float]) -> None:
    tasks = tasks_of({"A": 18000, "B": 1800, "C": 200})
    planned = plan(tasks, PlanParams(batch_rows=4, sampling=sampling), epoch=0)  # type: ignore[arg-type]
    drawn = np.bincount([step.task for step in planned.steps]) / len(planned.steps)
    assert len(planned.steps) == 5000
    assert drawn == pytest.approx(shares, abs=0.02)


def test_a_data_set_drawn_again_is_gone_through_in_passes_of_their_own_order() -> None:
    tasks = [*tasks_of({"A": 6, "B": 2}, group="small"), TaskRows("C", "large", 8, np.ones(200, int))]
    planned = plan(tasks, PlanParams(batch_rows=2, sampling="uniform"), epoch=0)
    small = [step.rows.tolist() for step in planned.steps if step.task < 2]
    passes = [small[start : start + 4] for start in range(0, len(small) - 3, 4)]
    assert len(passes) > 5
    assert all(sorted(row for rows in steps for row in rows) == list(range(8)) for steps in passes)
    assert len({str(steps) for steps in passes}) == len(passes)


def test_rows_seen_are_counted_once() -> None:
    planned = plan(tasks_of({"A": 2, "B": 20}), PlanParams(batch_rows=2, sampling="uniform"), epoch=0)
    assert rows_seen(planned.steps).tolist() == sorted({row for step in planned.steps for row in step.rows})
    assert rows_seen([]).tolist() == []
