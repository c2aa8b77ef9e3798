"""What tests share: the real files where they are, tiny encoders and the full sample, each made once a run."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from tests.browser import Page, chromium
from tests.builds import cut_of_sample, medi_build, options
from tests.tiny_encoders import make_cross_encoder, make_tiny_bert, make_tiny_t5

Once = Callable[[str, Callable[[Path], None]], Path]


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    """Let FAISS use so many threads."""
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(request.param)
    yield request.param
    faiss.omp_set_num_threads(before)


@pytest.fixture(autouse=True)
def manners_of_this_process() -> Iterator[None]:
    """What `main` sets for its process (how it takes SIGTERM and shows a fault) ends with the test that called it."""
    taken, shown = signal.getsignal(signal.SIGTERM), sys.excepthook
    yield
    signal.signal(signal.SIGTERM, taken)
    sys.excepthook = shown


@pytest.fixture
def said() -> list[str]:
    """The lines that a person saw."""
    return []


@pytest.fixture(scope="session")
def repo_root() -> Path:
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_raw(repo_root: Path) -> Path:
    """The real raw files that lie beside the repository on some machines."""
    folder = repo_root.parent / "shared" / "data" / "raw"
    if not folder.is_dir():
        pytest.skip("the real raw files are not here: ../shared/data/raw is absent")
    return folder


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """Make a folder once a run, however many workers ask for it."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base

    def make_once(name: str, make: Callable[[Path], None]) -> Path:
        done = shared / f"{name}.done"
        with FileLock(shared / f"{name}.lock"):
            if not done.exists():
                make(shared / name)
                done.touch()
        return shared / name

    return make_once


@pytest.fixture(scope="session")
def tiny_encoder(once: Once) -> Path:
    """A random BERT of 32 dimensions, as a sentence-transformers folder."""
    return once("tiny-bert", make_tiny_bert)


@pytest.fixture(scope="session")
def tiny_t5_encoder(once: Once) -> Path:
    """A random T5 encoder of 32 dimensions with a sentencepiece tokenizer, as a sentence-transformers folder."""
    return once("tiny-t5", make_tiny_t5)


@pytest.fixture(scope="session")
def sample_workspace(once: Once) -> Path:
    """The workspace in which `medi build --runner none` built the whole bundled sample."""
    return once("sample", build_sample)


@pytest.fixture(scope="session")
def sample_release(sample_workspace: Path) -> Path:
    """The release of the whole bundled sample; tests/test_prefect.py compares it with the one of `make sample`."""
    return sample_workspace / "medi" / "sample"


@pytest.fixture
def beside_the_sample(tmp_path: Path, sample_release: Path, tiny_encoder: Path) -> Path:
    """A folder in which data/ has a copy of the sample's release, as after `make sample`, and a model in place of the
    one of `make train-sample`.
    """
    shutil.copytree(sample_release, tmp_path / "data" / "medi" / "sample")
    (tmp_path / "data" / "models").mkdir()
    (tmp_path / "data" / "models" / "sample").symlink_to(tiny_encoder)
    return tmp_path


def build_sample(workspace: Path, runner: str = "none") -> None:
    call = [sys.executable, "-m", "pipelines.cli.app", "build", "--preset", "sample", "--runner", runner]
    done = subprocess.run([*call, "--workspace", str(workspace)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"the sample does not build:\n{done.stderr[-4000:]}"


@pytest.fixture(scope="session")
def cut(once: Once) -> Path:
    """A raw folder with every kind of unit."""
    return once("cut", cut_of_sample)


@pytest.fixture(scope="session")
def built(once: Once, cut: Path, tiny_encoder: Path) -> Path:
    """The workspace of a build of the cut, with its release in `out`."""

    def build(folder: Path) -> None:
        done = medi_build(*options(cut, folder, tiny_encoder), "--workers", "1", environment={"PYTHONHASHSEED": "1"})
        assert done.returncode == 0, done.stderr

    return once("built", build)


@pytest.fixture(scope="session")
def tiny_cross_encoder(once: Once) -> Path:
    """A random cross-encoder with one label, as a sentence-transformers folder."""
    return once("tiny-cross-encoder", lambda folder: make_cross_encoder(folder, labels=1))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A tab; each test opens what it looks at."""
    with chromium(tmp_path_factory.mktemp("profile")) as tab:
        yield tab
