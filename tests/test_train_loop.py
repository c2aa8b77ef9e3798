"""Runs in this process: losses fall, a schedule is what it says, what is not finite stops, a stopped run goes on."""

import json
import math
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from medi.errors import MediError, UsageError
from medi.train.ablations import Ablation
from medi.train.journal import Journal
from medi.train.loop import StepDone
from medi.train.recipe import Recipe, Resources, difference
from medi.train.run import Job, run
from tests.conftest import Once
from tests.training import Heard, job, write_release

PLAIN = Resources(save_every=2, keep=2, cpu=True, trackers=())


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def release(once: Once) -> Path:
    return once("train-release", write_release)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def same(one: Path, other: Path) -> bool:
    return (one / "model.safetensors").read_bytes() == (other / "model.safetensors").read_bytes()


def test_a_run_trains_says_its_recipe_and_leaves_an_ordinary_model(
    release: Path, tiny_t5_encoder: Path, tmp_path: Path
) -> None:
    heard = Heard()
    asked = job(release, tiny_t5_encoder, tmp_path / "out", replace(PLAIN, trackers=("tensorboard",)), max_steps=30)
    trained = run(asked, heard)
    assert trained.out == tmp_path / "out" and trained.steps == 30
    assert [done.step for done in heard.steps] == list(range(1, 31))
    # Three epochs of ten steps: each task's 20 rows are 8, 8 and 4, and its steps hold no other task's rows.
    assert heard.began == (0, 30, 1.0)
    assert [done.epoch for done in heard.steps] == [0] * 12 + [1] * 12 + [2] * 6
    assert {done.rows for done in heard.steps} == {8, 4}
    assert trained.last_loss < trained.first_loss - 0.4
    assert heard.lines[-1].startswith("texts cut at 128 tokens: 0; waited for batches ")
    assert "  batch size: 8" in heard.lines and "  temperature: 0.01" in heard.lines
    assert any((tmp_path / "out.run").rglob("events.out.tfevents*"))

    about = json.loads((tmp_path / "out" / "medi_training.json").read_text())
    manifest = json.loads((release / "manifest.json").read_text())
    assert about["recipe"]["release"]["content_digest"] == manifest["content_digest"]
    assert about["recipe"]["max_steps"] == 30 and about["recipe"]["model"]["name"] == "local"
    model = SentenceTransformer(str(tmp_path / "out"), device="cpu")
    assert [module.include_prompt for module in model if hasattr(module, "include_prompt")] == [False]
    assert "model.encode(" in (tmp_path / "out" / "README.md").read_text()
    assert model.encode("water", prompt="Represent the city:").shape == (32,)

    again = Heard()
    assert run(asked, again) == trained
    assert again.steps == [] and again.lines[-1] == f"{tmp_path / 'out'} is the model of this recipe already"


def test_losses_are_compared_task_by_task_and_by_their_largest_steps(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    assert all(map(math.isnan, journal.losses()))
    journal.begin(0)
    for step, (task, loss, rows) in enumerate([("a", 9.0, 8), ("b", 1.0, 8), ("a", 5.0, 8), ("b", 0.0, 2)], 1):
        journal.add(StepDone(step, 0, task, loss, 0.1, 1.0, rows, 10, 10, step - 1, 0.5, 2.0))
    assert journal.losses() == (5.0, 3.0)
    assert journal.truncated() == {"a": 2, "b": 4}
    assert journal.waited_share() == 0.25
    journal.path.write_text(journal.path.read_text() + '{"step": 5, "lo')
    journal.begin(2)
    assert journal.losses() == (5.0, 5.0)


def test_the_learning_rate_rises_for_a_tenth_and_falls_to_the_end() -> None:
    recipe = Recipe(max_steps=20, learning_rate=1.0)
    rates = [recipe.learning_rate_at(step) for step in range(20)]
    assert rates[:3] == [0.5, 1.0, 1.0]
    assert np.allclose(np.diff(rates[2:]), -1 / 18) and math.isclose(rates[-1], 1 / 18)
    assert Recipe(max_steps=1, warmup_ratio=0.0).learning_rate_at(0) == 2e-5


@pytest.mark.parametrize("sampling", ["size", "uniform"])
def test_a_run_that_goes_on_has_the_weights_of_one_that_was_never_stopped(
    release: Path, tiny_encoder: Path, tmp_path: Path, sampling: str
) -> None:
    whole = job(release, tiny_encoder, tmp_path / "whole", PLAIN, sampling=sampling, max_steps=15)
    run(whole, Heard())

    class Stopped(Exception):
        """Stands for whatever ends a run: nothing of it is caught."""

    class Stops(Heard):
        """Ends the run behind step 13, of the second epoch; steps 10 and 12 are kept."""

        def step(self, done: object) -> None:
            if getattr(done, "step", 0) == 13:
                raise Stopped

    stopped = replace(whole, out=tmp_path / "stopped", resources=replace(PLAIN, trackers=("tensorboard",)))
    with pytest.raises(Stopped):
        run(stopped, Stops())
    assert sorted(path.name for path in (tmp_path / "stopped.run").glob("step-*")) == ["step-00000010", "step-00000012"]
    heard = Heard()
    run(replace(stopped, resume=True), heard)
    assert [done.step for done in heard.steps] == [13, 14, 15]
    assert "going on behind step 12" in heard.lines
    assert same(tmp_path / "stopped", tmp_path / "whole")
    lines = [(tmp_path / f"{name}.run" / "steps.jsonl").read_text().splitlines() for name in ("stopped", "whole")]
    losses = [[json.loads(line)["loss"] for line in of] for of in lines]
    assert len(losses[0]) == 15 and losses[0] == losses[1]
    # Step 13, which was taken twice, is shown once.
    (events,) = {path.parent for path in (tmp_path / "stopped.run").rglob("events.out.tfevents*")}
    shown = EventAccumulator(str(events)).Reload().Scalars("loss")
    assert [event.step for event in shown] == list(range(1, 16))
    assert [event.value for event in shown] == pytest.approx(losses[0])


def test_another_recipe_never_goes_on_with_a_run(release: Path, tiny_encoder: Path, tmp_path: Path) -> None:
    asked = job(release, tiny_encoder, tmp_path / "out", PLAIN, max_steps=3)
    with pytest.raises(UsageError, match="--resume: .*out.run holds no step to go on from"):
        run(replace(asked, resume=True), Heard())
    run(asked, Heard())
    other = replace(asked, recipe=replace(asked.recipe, batch_size=4))
    with pytest.raises(UsageError, match=r"step-00000002 was trained with --batch-size 8, not 4; name another --out"):
        run(other, Heard())
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(UsageError, match="holds something that medi did not train"):
        run(replace(asked, out=tmp_path / "mine"), Heard())
    assert difference({"a": 1, "b_c": 2}, {"a": 1, "b_c": 3}) == "--b-c 2, not 3"


def test_a_loss_that_is_no_number_stops_with_the_rows_and_keeps_the_last_good_step(
    release: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    asked = job(release, tiny_encoder, tmp_path / "out", PLAIN, max_steps=5, temperature=0.05)

    class Poisons(Heard):
        """Puts a weight that is no number into the model once three steps are done, as an overflow would."""

        def step(self, done: object) -> None:
            super().step(done)  # type: ignore[arg-type]
            if len(self.steps) == 2:
                spoil(tmp_path / "out.run" / "step-00000002")
                raise KeyboardInterrupt

    def spoil(folder: Path) -> None:
        found = weights(folder)
        found["embeddings.word_embeddings.weight"][:] = math.nan
        save_file(found, folder / "model.safetensors", metadata={"format": "pt"})

    with pytest.raises(KeyboardInterrupt):
        run(asked, Poisons())
    with pytest.raises(MediError) as stopped:
        run(asked, Heard())
    told = str(stopped.value)
    assert told.startswith("step 3 of task ") and "the loss is nan" in told and "\n" not in told
    assert told.endswith(f"the last step kept before it is {tmp_path / 'out.run' / 'step-00000002'}")
    task = told.split()[4].rstrip(":")
    prefix = {"asks": "asks/", "twins": "twins/"}.get(task, "super_ni/")
    assert told.count(prefix) in (4, 8)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "resources",
    [replace(PLAIN, cached=True), replace(PLAIN, token_budget=64), replace(PLAIN, cached=True, token_budget=1)],
)
def test_micro_batches_and_the_gradient_cache_leave_the_weights_what_they_are(
    release: Path, tiny_t5_encoder: Path, tmp_path: Path, resources: Resources, once: Once
) -> None:
    without_dropout = once("calm-t5", lambda folder: calm(tiny_t5_encoder, folder))
    one = job(release, without_dropout, tmp_path / "one", PLAIN, max_steps=3)
    heard, other = Heard(), Heard()
    run(one, heard)
    run(replace(one, out=tmp_path / "other", resources=resources), other)
    assert np.allclose([d.loss for d in heard.steps], [d.loss for d in other.steps], atol=1e-4)
    found, expected = weights(tmp_path / "other"), weights(tmp_path / "one")
    assert max(float((found[name] - expected[name]).abs().max()) for name in expected) < 5e-4


def calm(model: Path, folder: Path) -> None:
    """Write the model without dropout."""
    calmed = SentenceTransformer(str(model), device="cpu", config_kwargs={"dropout_rate": 0.0})
    calmed.save(str(folder))


def test_what_a_plan_leaves_out_is_said_and_ablations_reach_the_rows(
    release: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    heard = Heard()
    few: dict[str, object] = {"max_steps": 2, "remainder": "drop", "batch_size": 16, "negatives": 0}
    asked = job(release, tiny_encoder, tmp_path / "out", PLAIN, **few)
    run(replace(asked, recipe=replace(asked.recipe, ablation=Ablation(tasks="symmetric", super_ni=False))), heard)
    assert [done.task for done in heard.steps] == ["twins", "twins"]
    assert "rows an epoch leaves out (remainder): twins 4" in heard.lines
    with pytest.raises(MediError, match="no step of 64 rows is left of 80 rows"):
        run(replace(asked, out=tmp_path / "x", recipe=Recipe(batch_size=64, remainder="drop")), heard)


def test_an_epoch_is_as_many_steps_as_the_plan_has(release: Path, tiny_encoder: Path, tmp_path: Path) -> None:
    heard = Heard()
    asked: Job = job(release, tiny_encoder, tmp_path / "out", PLAIN, batch_size=32)
    run(replace(asked, epochs=0.5), heard)
    assert heard.began[1] == 2 and heard.began[2] == 0.5


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"temperature": 0.0}, "--temperature 0.0: give a number above 0"),
        ({"batch_size": 0}, "--batch-size 0: give at least 1"),
        ({"batch_size": 10**20}, f"--batch-size {10**20}: give at least 1, at most 2147483647"),
        ({"max_steps": 10**20}, f"--max-steps {10**20}: give at least 1, at most 2147483647"),
        ({"negatives": 10**20}, f"--negatives {10**20}: give 0 or more, at most 2147483647"),
        ({"forward_candidates": "some"}, "--forward-candidates some: give one of all, negatives"),
        ({"dtype": "float16"}, "--dtype float16: give one of float32, bfloat16"),
        ({"max_length": 8}, "--max-length 8: give at least 24 tokens"),
        ({"warmup_ratio": 1.0}, "--warmup-ratio 1.0: give a share"),
        ({"learning_rate": math.nan}, "--learning-rate nan: give a number above 0"),
    ],
)
def test_values_that_no_run_can_have_are_refused(wrong: dict[str, object], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        replace(Recipe(), **wrong).check()


def test_one_run_at_a_time_trains_into_a_folder(release: Path, tiny_encoder: Path, tmp_path: Path) -> None:
    asked = job(release, tiny_encoder, tmp_path / "out", PLAIN, max_steps=3)
    told = f"--out {tmp_path / 'out'}: another run trains it; wait for its end, or name another"

    class Second(Heard):
        """Begins the same run again while the first one runs."""

        def step(self, done: object) -> None:
            super().step(done)  # type: ignore[arg-type]
            with pytest.raises(UsageError, match=re.escape(told)):
                run(asked, Heard())

    heard = Second()
    run(asked, heard)
    assert len(heard.steps) == 3
    assert run(asked, Heard()).steps == 3


def test_out_may_be_no_link_for_a_finished_model_is_renamed_into_place(
    release: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "real")
    heard = Heard()
    with pytest.raises(UsageError, match="out is a link or a mount point; name a folder inside it"):
        run(job(release, tiny_encoder, tmp_path / "out", PLAIN, max_steps=1), heard)
    assert heard.steps == []


def test_the_losses_of_a_model_are_known_without_its_run(release: Path, tiny_encoder: Path, tmp_path: Path) -> None:
    asked = job(release, tiny_encoder, tmp_path / "out", PLAIN, max_steps=4)
    trained = run(asked, Heard())
    shutil.rmtree(tmp_path / "out.run")
    assert run(asked, Heard()) == trained


def test_a_run_goes_on_with_the_token_budget_it_began_with(release: Path, tiny_encoder: Path, tmp_path: Path) -> None:
    """Dropout draws for micro-batches, so another budget draws other numbers."""
    asked = job(release, tiny_encoder, tmp_path / "out", PLAIN, max_steps=2)
    run(asked, Heard())
    with pytest.raises(UsageError, match="was trained with --token-budget None, not 300"):
        run(replace(asked, resources=replace(PLAIN, token_budget=300)), Heard())
