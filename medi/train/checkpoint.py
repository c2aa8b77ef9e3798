"""A model in training -> folders on the disk, each complete or not there: steps to go on from, the model at the end.

OUT is an ordinary sentence-transformers folder with the recipe in it. Beside it, OUT.run holds what the run needs to go
on: `step-<number>/`, each such a folder too, with the optimizer's state inside.
"""

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from medi.errors import MediError, UsageError
from medi.publish import fsync, new_temporary, remove_orphans, write_json, writing
from medi.train.card import model_card
from medi.train.recipe import difference

if TYPE_CHECKING:
    import torch
    from sentence_transformers import SentenceTransformer

RECIPE = "medi_training.json"
_OPTIMIZER = "optimizer.pt"
_STEP = "step-"


@dataclass(frozen=True)
class Keeper:
    """Where one run's folders are. `recipe` is the recipe's JSON form, `keep` how many steps stay."""

    out: Path
    recipe: Mapping[str, object]
    keep: int = 2

    @property
    def run(self) -> Path:
        """Return the folder of the run beside the model."""
        return self.out.with_name(f"{self.out.name}.run")

    def steps(self) -> list[int]:
        """Return the numbers of the steps that are kept, rising: so many steps were done."""
        names = (path.name.removeprefix(_STEP) for path in self.run.glob(f"{_STEP}*"))
        return sorted(int(name) for name in names if name.isdigit())

    def folder(self, step: int) -> Path:
        """Return the folder of a step."""
        return self.run / f"{_STEP}{step:08d}"

    def check(self) -> "Keeper":
        """Return self, leftovers of killed runs removed.

        Raises:
            UsageError: OUT is something else, or holds or had begun a run of another recipe.
        """
        for place in (self.out, self.run):
            if place.exists() and not place.is_dir():
                raise UsageError(f"--out {self.out}: {place} is a file; name another folder")
            # A finished folder is renamed into place, which neither of these lets happen.
            if place.is_symlink() or place.is_mount():
                raise UsageError(f"--out {self.out}: {place} is a link or a mount point; name a folder inside it")
        if self.out.is_dir() and any(self.out.iterdir()) and not (self.out / RECIPE).is_file():
            raise UsageError(f"--out {self.out}: holds something that medi did not train; name another folder")
        remove_orphans(self.run)
        remove_orphans(self.out.parent, deep=False)
        known = [self.folder(step) for step in self.steps()[-1:]] + [self.out] * (self.out / RECIPE).is_file()
        for folder in known:
            if other := difference(_recipe_in(folder), json.loads(json.dumps(self.recipe))):
                raise UsageError(
                    f"--out {self.out}: {folder} was trained with {other}; name another --out, or delete both "
                    f"{self.out} and {self.run} to begin anew"
                )
        return self

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Let no other process train into OUT meanwhile. Raises UsageError where one does already."""
        self.run.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.run / "lock", timeout=0)
        try:
            with lock:
                yield
        except Timeout:
            raise UsageError(f"--out {self.out}: another run trains it; wait for its end, or name another") from None

    def losses(self) -> tuple[float, float]:
        """Return the first and the last loss of the model in OUT."""
        known = json.loads((self.out / RECIPE).read_bytes())
        return known["first loss"], known["last loss"]

    def is_done(self) -> bool:
        """Return whether OUT is the model of this recipe."""
        return (self.out / RECIPE).is_file()

    def save_step(self, step: int, model: "SentenceTransformer", optimizer: "torch.optim.Optimizer") -> Path:
        """Write a step that a run can go on from, remove the oldest ones, and return its folder."""
        import torch

        temporary = new_temporary(self.folder(step))
        try:
            with writing(self.run):
                self._write_model(temporary, model, step)
                with _disk_errors(), (temporary / _OPTIMIZER).open("wb") as file:
                    torch.save(optimizer.state_dict(), file)
                _move(temporary, self.folder(step))
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        for old in self.steps()[: -self.keep]:
            shutil.rmtree(self.folder(old))
        return self.folder(step)

    def load_optimizer(self, step: int, optimizer: "torch.optim.Optimizer") -> None:
        """Bring the optimizer to where it was after a step. Raises MediError where its file is damaged."""
        import torch

        path = self.folder(step) / _OPTIMIZER
        try:
            optimizer.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
        except (OSError, RuntimeError, ValueError, KeyError, EOFError) as error:
            why = (str(error).splitlines() or [type(error).__name__])[0]
            raise MediError(f"{path}: cannot be read ({why}); delete {path.parent} and run again") from None

    def publish(self, model: "SentenceTransformer", facts: Mapping[str, object]) -> Path:
        """Put the trained model in the place of OUT and return it; `facts` are further lines of its card."""
        temporary = new_temporary(self.out)
        try:
            with writing(self.out):
                self._write_model(temporary, model, int(str(self.recipe["max_steps"])), facts)
                _move(temporary, self.out)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        return self.out

    def _write_model(
        self, folder: Path, model: "SentenceTransformer", step: int, facts: Mapping[str, object] | None = None
    ) -> None:
        """Write a sentence-transformers folder with the recipe and a card."""
        with _disk_errors():
            model.save(str(folder), create_model_card=False)
        card = model_card(self.recipe, step, facts or {})
        (folder / "README.md").write_text(card, encoding="utf-8")
        write_json(folder / RECIPE, {"recipe": self.recipe, "step": step, **(facts or {})})


@contextmanager
def _disk_errors() -> Iterator[None]:
    """Raise what the disk said as OSError: torch and safetensors put an error of their own over it."""
    from safetensors import SafetensorError

    try:
        yield
    except (RuntimeError, SafetensorError) as error:
        if said := re.search(r"\(os error (\d+)\)", str(error)):
            raise OSError(int(said[1]), os.strerror(int(said[1]))) from error
        if isinstance(error.__context__, OSError):
            raise error.__context__ from error
        raise


def _recipe_in(folder: Path) -> dict[str, object]:
    """Return the recipe of a folder of ours. Raises UsageError where it cannot be read."""
    try:
        return json.loads((folder / RECIPE).read_bytes())["recipe"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{folder / RECIPE}: cannot be read ({error}); delete {folder} and run again") from None


def _move(temporary: Path, final: Path) -> None:
    """Rename a finished folder into place, durable; what of ours lies there goes."""
    for path in temporary.rglob("*"):
        fsync(path)
    fsync(temporary)
    if final.exists():
        old = new_temporary(final)
        os.rename(final, old)
        os.rename(temporary, final)
        shutil.rmtree(old)
    else:
        os.rename(temporary, final)
    fsync(final.parent)
