"""As `benchmarks.embed`, for a random encoder of the shape of Sentence-T5 base.

python -m benchmarks.embed_t5 [--repeats 5] [--rows 1000]
"""

from functools import partial

from benchmarks import paired
from benchmarks.embed import sized, t5_base

BENCHMARK = sized("Embed: the shape of Sentence-T5 base", "benchmarks.embed_t5", t5_base, 1_000)

if __name__ == "__main__":
    paired.main(BENCHMARK, partial(sized, BENCHMARK.title, BENCHMARK.module, t5_base))
