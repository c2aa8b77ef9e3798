"""What a build will take, before anything of it runs: rows, texts, tokens, bytes, memory and hours."""

from medi.plan.disk import Estimate, check_disk, estimate, in_words, needed_bytes

__all__ = ["Estimate", "check_disk", "estimate", "in_words", "needed_bytes"]
