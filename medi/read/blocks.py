"""Bytes of a file, gz or plain -> unpacked blocks; what is wrong with the file comes as a Damage.

A gz is unpacked as bare deflate, its header and trailer checked here: isal drops a whole block where a checksum is
wrong, and says nothing of a cut, of bytes after the end, or of an empty file.
"""

import errno
import os
import stat
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from isal import igzip_lib, isal_zlib

# Small ones cost fewest page faults: larger ones go back to the system each time they are freed, until the allocator
# has learned not to. But for each block the thread that unpacks waits until the one that splits and hashes lets it go
# on: so they are large where a file has many.
BLOCK_BYTES, _LARGE_BLOCK_BYTES = 1 << 18, 1 << 22
_LARGE_FILE_BYTES = 1 << 25
_HEAD_BYTES = 512
_PACKED_BYTES, _LARGE_PACKED_BYTES = 1 << 18, 1 << 21
_GZ = b"\x1f\x8b"
_AGAIN = "fetch or make it again"
_READING = {errno.EACCES: "give yourself the right to read it", errno.EISDIR: "put the file in its place"}
_EXTRA, _NAME, _COMMENT, _HEADER_CRC = 4, 8, 16, 2
# JSON lines pack to a third or a tenth; deflate can make a thousand bytes of one, and a bomb does.
_RATIO = 250
_UNSUSPECTED_BYTES = 1 << 23
_StandIn = tuple[tuple[bytes, ...], str, str]
# How a file begins that is something else (in lower case), what it is, and what helps.
_STAND_INS: tuple[_StandIn, ...] = (
    ((b"version https://git-lfs",), "a Git-LFS pointer", "fetch the file itself"),
    ((b"<!doctype", b"<html", b"<head", b"<?xml"), "an HTML page", "fetch the file itself"),
    ((b"pk\3\4",), "a zip archive", "unpack it"),
    ((b"bzh",), "a bz2 file", "unpack it"),
    ((b"\xfd7zxz\0",), "an xz file", "unpack it"),
    ((b"(\xb5/\xfd",), "a zstd file", "unpack it"),
    ((b"\xff\xfe", b"\xfe\xff"), "UTF-16 text", "save it as UTF-8"),
)
_INSIDE: tuple[_StandIn, ...] = (
    ((_GZ,), "a gz packed twice", "unpack it once"),
    ((b"par1",), "Parquet inside a gz", "unpack it"),
)


class Damage(Exception):
    """A file is not what it should be; the message says how, in plain words, and the one thing that helps."""

    def __init__(self, what: str, advice: str = _AGAIN) -> None:
        """Take what is wrong, and what to do."""
        super().__init__(f"{what}; {advice}")


def blocks(path: Path, prefix: bool = False) -> Iterator[bytes]:
    """Yield a file's unpacked bytes in blocks: of at most `BLOCK_BYTES`, of a large file 16 times as much.

    With `prefix` the file is the beginning of a longer one, so that its end may be cut.
    Raises Damage: unreadable, a folder, empty, a pointer or a page in place of data, a damaged gz or one that unpacks
    to more than 250 times its size.
    """
    try:
        if not stat.S_ISREG(mode := path.stat().st_mode) and not stat.S_ISDIR(mode):
            # A pipe would be waited for without end.
            raise Damage("a pipe or a device in place of a file", "put the file in its place")
        with path.open("rb") as file:
            size_bytes = os.fstat(file.fileno()).st_size
            head = file.read(_HEAD_BYTES)
            file.seek(0)
            _refuse_stand_ins(head, size_bytes, _STAND_INS)
            if head.startswith(_GZ):
                yield from _unpack(file, size_bytes, prefix)
            else:
                yield from iter(lambda: file.read(_block_bytes(size_bytes)), b"")
    except OSError as error:
        raise Damage(f"cannot be read ({error.strerror or error})", _READING.get(error.errno or 0, _AGAIN)) from error


def _block_bytes(size_bytes: int) -> int:
    """Return how many bytes a block of a file of this size has at most."""
    return BLOCK_BYTES if size_bytes < _LARGE_FILE_BYTES else _LARGE_BLOCK_BYTES


def _refuse_stand_ins(head: bytes, size_bytes: int, known: tuple[_StandIn, ...]) -> None:
    """Raise Damage where a file, or what it unpacks to, begins as something that is no data."""
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if not head:
        raise Damage("the file is empty (0 bytes)")
    for beginnings, what, advice in known:
        if text.startswith(beginnings):
            raise Damage(f"{what} in place of data ({size_bytes:,} bytes)", advice)


def refuse_bomb(unpacked_bytes: int, packed_bytes: int, what: str) -> None:
    """Raise Damage where so little unpacks to so much that it cannot be data."""
    if unpacked_bytes > max(_UNSUSPECTED_BYTES, _RATIO * packed_bytes):
        raise Damage(f"{what} unpacks to more than {_RATIO} times its size", "see what is in it")


class _Packed:
    """The packed bytes of a file, with a way to give back what a member did not need; and the size of its blocks."""

    def __init__(self, file: BinaryIO, size_bytes: int) -> None:
        self._file = file
        self._piece_bytes = _PACKED_BYTES if size_bytes < _LARGE_FILE_BYTES else _LARGE_PACKED_BYTES
        self.block_bytes = _block_bytes(size_bytes)
        self._held = b""

    def piece(self) -> bytes:
        """Return some bytes, none only at the end of the file."""
        held, self._held = self._held, b""
        return held or self._file.read(self._piece_bytes)

    def give_back(self, unused: bytes) -> None:
        """Put bytes back in front of the rest."""
        self._held = unused + self._held

    def exactly(self, length_bytes: int) -> bytes:
        """Return that many bytes. Raises EOFError where the file ends first."""
        while len(self._held) < length_bytes:
            more = self._file.read(self._piece_bytes)
            if not more:
                raise EOFError
            self._held += more
        found, self._held = self._held[:length_bytes], self._held[length_bytes:]
        return found


def _unpack(file: BinaryIO, size_bytes: int, prefix: bool) -> Iterator[bytes]:
    """Yield the unpacked bytes of all members of a gz; zero padding between and after members is no data."""
    packed = _Packed(file, size_bytes)
    given_bytes = 0
    try:
        while _skip_to_member(packed, given_bytes):
            _skip_header(packed)
            for block in _member(packed):
                if not given_bytes:
                    _refuse_stand_ins(block[:_HEAD_BYTES], size_bytes, _STAND_INS + _INSIDE)
                given_bytes += len(block)
                refuse_bomb(given_bytes, file.tell(), "the gz")
                yield block
    except EOFError:
        if not prefix:
            raise Damage(f"the gz is cut: it ends after {size_bytes:,} bytes ({given_bytes:,} unpacked)") from None
    except igzip_lib.IsalError as error:  # pyright: ignore[reportGeneralTypeIssues]
        raise Damage(f"the gz is damaged after {given_bytes:,} unpacked bytes ({error})") from error


def _skip_to_member(packed: _Packed, given_bytes: int) -> bool:
    """Step over zero padding; return whether another member starts."""
    while piece := packed.piece():
        if rest := piece.lstrip(b"\0"):
            packed.give_back(rest)
            if not rest.startswith(_GZ[:1]) or (len(rest) > 1 and not rest.startswith(_GZ)):
                raise Damage(f"bytes that are no gz follow after {given_bytes:,} unpacked bytes")
            return True
    return False


def _skip_header(packed: _Packed) -> None:
    method, flags = struct.unpack("<2xBB6x", packed.exactly(10))
    if method != 8:
        raise Damage(f"the gz is packed by the unknown method {method}")
    if flags & _EXTRA:
        packed.exactly(struct.unpack("<H", packed.exactly(2))[0])
    for flag in (_NAME, _COMMENT):
        while flags & flag and packed.exactly(1) != b"\0":
            pass
    if flags & _HEADER_CRC:
        packed.exactly(2)


def _member(packed: _Packed) -> Iterator[bytes]:
    """Yield one member's bytes, then check its trailer. Raises EOFError where the file ends first."""
    unpacker = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_DEFLATE)
    checksum, length_bytes = 0, 0
    while not unpacker.eof:
        piece = packed.piece() if unpacker.needs_input else b""
        if unpacker.needs_input and not piece:
            raise EOFError
        block = unpacker.decompress(piece, packed.block_bytes)
        if block:
            checksum = isal_zlib.crc32(block, checksum)
            length_bytes += len(block)
            yield block
    packed.give_back(unpacker.unused_data)
    if struct.unpack("<II", packed.exactly(8)) != (checksum, length_bytes & 0xFFFFFFFF):
        raise Damage(f"the gz's checksum is wrong ({length_bytes:,} unpacked bytes)")
