"""Raw records -> ROWS: the pool of a source, and the examples of a Super-NI task, with every loss counted by reason."""

from medi.ingest.pool import IngestParams, ingest, pool_rows

__all__ = ["IngestParams", "ingest", "pool_rows"]
