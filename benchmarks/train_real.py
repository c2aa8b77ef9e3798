"""A model before and after training on a release: STS, SST-2 and MSRP with and without instructions; the loss curve.

`python -m benchmarks.train_real RELEASE EVAL OUT --max-steps 300 --batch-size 32 ...`: what stands behind OUT goes to
`medi train`. EVAL holds sts/, sst2/ and msrp/ as in SemEval, SAPT and the MSR corpus. The extra `report` draws it.
"""

import csv
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

MODEL = "all-MiniLM-L6-v2"
# In the words of the paper's prompts for these tasks (its Table 10).
INSTRUCTIONS = {
    "STS": "Represent the statement:",
    "SST-2": "Represent the sentence for classifying emotion as positive or negative:",
    "MSRP": "Represent the sentence for finding a paraphrase:",
}
Embed = Callable[[list[str]], np.ndarray]


def sts(embed: Embed, folder: Path) -> float:
    """Return Spearman's rho of cosines and human scores, the mean over the sets of 2013 and 2014."""
    from scipy.stats import spearmanr

    found = []
    for path in sorted(folder.glob("sts/*/*.tsv")):
        lines = [line.split("\t")[:3] for line in path.read_text().splitlines() if line.strip()]
        left, right = (embed([line[side] for line in lines]) for side in (1, 2))
        found.append(spearmanr([float(line[0]) for line in lines], (left * right).sum(axis=1)).statistic)
    return float(np.mean(found))


def sst2(embed: Embed, folder: Path) -> float:
    """Return the accuracy of a logistic regression on the vectors, the mean over ten folds of the 872 sentences."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_score

    rows = [json.loads(line) for line in (folder / "sst2" / "dev.jsonl").read_text().splitlines()]
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    vectors = embed([row["text"] for row in rows])
    return float(
        cross_val_score(LogisticRegression(max_iter=1000), vectors, [r["label"] for r in rows], cv=folds).mean()
    )


def msrp(embed: Embed, folder: Path) -> float:
    """Return the average precision with which the cosine ranks paraphrases before other pairs."""
    from sklearn.metrics import average_precision_score

    with (folder / "msrp" / "msr-para-test.tsv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]
    left, right = (embed([row[side] for row in rows]) for side in (3, 4))
    return float(average_precision_score([int(row[0]) for row in rows], (left * right).sum(axis=1)))


TESTS = {"STS": sts, "SST-2": sst2, "MSRP": msrp}


def scores(name: str, folder: Path) -> dict[str, tuple[float, float]]:
    """Return test -> its score without and with the instruction, of a model by its folder or name."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(name)
    model.set_pooling_include_prompt(False)

    def with_prompt(prompt: str | None) -> Embed:
        return lambda texts: model.encode(texts, prompt=prompt, normalize_embeddings=True, show_progress_bar=False)

    return {
        test: (score(with_prompt(None), folder), score(with_prompt(INSTRUCTIONS[test]), folder))
        for test, score in TESTS.items()
    }


def draw(steps: list[dict], path: Path) -> None:
    """Draw the loss of each step and its mean over the last 25 into a picture."""
    from matplotlib import pyplot as plt

    loss = np.array([step["loss"] for step in steps])
    mean = np.array([loss[max(0, i - 24) : i + 1].mean() for i in range(len(loss))])
    figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
    axes.plot(loss, ".", color="#9db4c8", markersize=3, label="step (one task each)")
    axes.plot(mean, color="#1f4e79", label="mean of the last 25")
    axes.set(xlabel="step", ylabel="loss, both directions", xlim=(0, len(loss)), ylim=(0, None))
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def main(release: str, folder: Path, out: Path, options: list[str]) -> None:
    """Train, and print a table of scores before and after."""
    before = scores(packaged(), folder)
    call = [sys.executable, "-m", "pipelines.cli.app", "train", release, "--model", MODEL, "--out", str(out), *options]
    subprocess.run(call, check=True)
    after = scores(str(out), folder)
    lines = (Path(f"{out}.run") / "steps.jsonl").read_text().splitlines()
    draw([json.loads(line) for line in lines], Path(f"{out}.loss.png"))
    print("| test | before | before, instructed | after | after, instructed |\n|---|---:|---:|---:|---:|")
    for test in TESTS:
        print(f"| {test} | " + " | ".join(f"{score:.4f}" for score in (*before[test], *after[test])) + " |")


def packaged() -> str:
    """Return the folder of MiniLM's package."""
    from medi.encoder_names import MINILM
    from medi.fetch import Settings, find_encoder

    return str(find_encoder(MINILM, None, Settings(Path("data"), offline=True)).folder)


if __name__ == "__main__":
    if len(sys.argv) < 4 or sys.argv[1].startswith("-"):
        sys.exit(f"{__doc__}")
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:])
