"""Raw records -> ROWS: the pool of a source, and the examples of a Super-NI task, with every loss counted by reason."""

from medi.ingest.labelled import labelled
from medi.ingest.pool import IngestParams, ingest, pool_rows
from medi.ingest.super_ni import ingest_task

__all__ = ["IngestParams", "ingest", "ingest_task", "labelled", "pool_rows"]
