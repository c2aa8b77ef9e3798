"""Raw files on disk -> raw records, in batches of constant memory; Parquet, gz and plain files are told by their bytes.

Damage never raises here: it comes as the `fault` of a last batch, so that a caller may keep what stood before it.
"""

from medi.read.pages import wanted_pages
from medi.read.records import raw_batches, read_whole

__all__ = ["raw_batches", "read_whole", "wanted_pages"]
