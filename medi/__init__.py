"""medi rebuilds MEDI, the training set of the InstructOR text-embedding models (arXiv 2212.09741)."""

__version__ = "0.1.0"
