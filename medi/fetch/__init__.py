"""From places to files: finds, downloads, pins and verifies what a build reads; the only room that uses the network."""

from medi.fetch.download import choose_variant, download, fetch_all, obtain, prefix, prefix_bytes, remote_sizes
from medi.fetch.encoder import encoder_folder
from medi.fetch.http import NotThere
from medi.fetch.local import LocalFile, digest_file
from medi.fetch.places import Remote, remote_files, remote_pages
from medi.fetch.raw import Found, digested, find_raw
from medi.fetch.settings import Settings
from medi.fetch.tasks import SUPER_NI_COMMIT, fetch_tasks

__all__ = [
    "SUPER_NI_COMMIT",
    "Found",
    "LocalFile",
    "NotThere",
    "Remote",
    "Settings",
    "choose_variant",
    "digest_file",
    "digested",
    "download",
    "encoder_folder",
    "fetch_all",
    "fetch_tasks",
    "find_raw",
    "obtain",
    "prefix",
    "prefix_bytes",
    "remote_files",
    "remote_pages",
    "remote_sizes",
]
