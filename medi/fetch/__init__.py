"""From places to files: finds, downloads, pins and verifies what a build reads; the only room that uses the network."""

from medi.fetch.encoder import encoder_folder
from medi.fetch.local import LocalFile, digest_file
from medi.fetch.settings import Settings

__all__ = ["LocalFile", "Settings", "digest_file", "encoder_folder"]
