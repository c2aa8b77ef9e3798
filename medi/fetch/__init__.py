"""From places to files: finds, downloads, pins and verifies what a build reads; the only room that uses the network."""

from medi.fetch.download import by_hand, choose_variant, download, fetch_all, prefix, prefix_bytes, remote_sizes
from medi.fetch.encoder import EncoderFiles, fetch_encoder, find_encoder
from medi.fetch.hosts import Unreachable, forget_hosts
from medi.fetch.local import LocalFile, digest_file
from medi.fetch.patience import NotThere
from medi.fetch.places import Remote, remote_files, remote_pages
from medi.fetch.raw import Found, digested, find_raw
from medi.fetch.settings import Settings
from medi.fetch.tasks import SUPER_NI_COMMIT, fetch_tasks, reach_tasks

__all__ = [
    "SUPER_NI_COMMIT",
    "EncoderFiles",
    "Found",
    "LocalFile",
    "NotThere",
    "Remote",
    "Settings",
    "Unreachable",
    "by_hand",
    "choose_variant",
    "digest_file",
    "digested",
    "download",
    "fetch_all",
    "fetch_encoder",
    "fetch_tasks",
    "find_encoder",
    "find_raw",
    "forget_hosts",
    "prefix",
    "prefix_bytes",
    "reach_tasks",
    "remote_files",
    "remote_pages",
    "remote_sizes",
]
