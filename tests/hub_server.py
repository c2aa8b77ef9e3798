"""A loopback Hub: folders of this test become repositories and plain addresses, with the failures a network has.

It speaks as much of the Hub's protocol as huggingface_hub's client uses. Files are named by the path of their URL.
"""

import hashlib
import json
import os
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

from medi.fetch import SUPER_NI_COMMIT
from medi.source import File, Variant
from tests.hub_uploads import take

FIRST_COMMIT = "a" * 40
NOTHING: Mapping[str, str] = {}


@dataclass
class Fault:
    """How the next requests for a path end: with a status (and headers), or a body that is cut or stalls.

    `silent_seconds` pass before anything is answered; `instead` is sent in the place of the file.
    """

    times: int = 1
    status: int = 0
    retry_after: str = ""
    cut_after_bytes: int | None = None
    stall_seconds: float = 0.0
    silent_seconds: float = 0.0
    headers: Mapping[str, str] = field(default_factory=dict)
    instead: bytes | None = None


@dataclass
class Repository:
    """A repository of one branch: its files at the newest commit; older commits answer 404."""

    files: dict[str, bytes]
    commit: str = FIRST_COMMIT
    large: set[str] = field(default_factory=set)
    private: bool = False


@dataclass
class Hub:
    """What is served, and what was asked for. Paths as in `/datasets/OWNER/NAME/resolve/COMMIT/FILE` or plain ones."""

    datasets: dict[str, Repository] = field(default_factory=dict)
    models: dict[str, Repository] = field(default_factory=dict)
    plain: dict[str, bytes] = field(default_factory=dict)
    faults: dict[str, Fault] = field(default_factory=dict)
    asked: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    sent_bytes: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    ignores_range: bool = False
    gives_tags: bool = True
    address: str = ""
    cdn: str = ""
    # What tests/hub_uploads.py was given: large files by SHA-256, and the header and changes of each commit.
    large_files: dict[str, bytes] = field(default_factory=dict)
    commits: list[tuple[str, list[str]]] = field(default_factory=list)
    lost_uploads: int = 0

    def paths(self, method: str = "GET") -> list[str]:
        """Return the paths asked for by this method, in order."""
        return [path for asked, path, _ in self.asked if asked == method]

    def repository(self, kind: str, name: str) -> Repository | None:
        """Return a repository of a kind (datasets or models), None where it does not exist."""
        return (self.datasets if kind == "datasets" else self.models).get(name)


@contextmanager
def environment(**values: str) -> Iterator[None]:
    """Set environment variables until the block ends."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def publish(hub: Hub, variant: Variant, file: File, contents: list[bytes]) -> list[str]:
    """Put contents where a variant's place has the declared file (a glob stands for all of them); returns the paths."""
    remote = file.remote or file.pattern.rpartition("/")[2]
    numbers = [f"{n:05d}-of-{len(contents):05d}" for n in range(len(contents))]
    paths = [remote.replace("*", number) for number in numbers] if "*" in remote else [remote]
    for path, content in zip(paths, contents, strict=True):
        if variant.place.startswith("hub:"):
            hub.datasets.setdefault(variant.place.removeprefix("hub:"), Repository({})).files[path] = content
        else:
            hub.plain[urlsplit(path if "://" in path else f"{variant.place}/{path}").path] = content
    return paths


def publish_task(hub: Hub, name: str, content: bytes) -> None:
    """Put a Super-NI task file where the pinned commit has it."""
    hub.plain[f"/allenai/natural-instructions/{SUPER_NI_COMMIT}/tasks/{name}.json"] = content


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    """Serve the hub on a free port of 127.0.0.1 until the block ends; `hub.address` is where."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, hub))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    hub.address = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = "HTTP/1.1"

    def __init__(self, hub: Hub, *args: object) -> None:
        self.hub = hub
        super().__init__(*args)  # type: ignore[arg-type]

    def log_message(self, format: str, *args: object) -> None:
        """Keep the console of the tests quiet."""

    def do_HEAD(self) -> None:
        """Answer as for GET, without a body."""
        self._answer()

    def do_GET(self) -> None:
        """Answer with a listing, a file, or a fault."""
        self._answer()

    def do_POST(self) -> None:
        """Answer what a client sends before and after its files."""
        self._take()

    def do_PUT(self) -> None:
        """Take a large file."""
        self._take()

    def _take(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.hub.asked.append((self.command, path, {k.lower(): v for k, v in self.headers.items()}))
        status, answer = take(self.hub, path, self._body())
        self._send(status, json.dumps(answer).encode(), {"Content-Type": "application/json"})

    def _body(self) -> bytes:
        """Return what was sent, in one piece or in chunks."""
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        pieces = []
        while size := int(self.rfile.readline(), 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def _answer(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.hub.asked.append((self.command, path, {k.lower(): v for k, v in self.headers.items()}))
        fault = self._fault(path)
        if fault:
            time.sleep(fault.silent_seconds)
        if fault and fault.status:
            asked = {"Retry-After": fault.retry_after} if fault.retry_after else {}
            self._send(fault.status, b"", {**asked, **fault.headers})
            return
        parts = path.strip("/").split("/")
        if parts[:2] in (["api", "datasets"], ["api", "models"]):
            self._describe(parts[1], "/".join(parts[2:4]), parts[5] if len(parts) > 5 else "main")
        elif "resolve" in parts:
            self._resolve(parts, fault)
        elif path in self.hub.plain:
            content = self.hub.plain[path]
            tag = {"ETag": f'"{hashlib.md5(content).hexdigest()}"'} if self.hub.gives_tags else {}
            self._send_file(path, content, tag, fault)
        else:
            self._send(404, b"")

    def _fault(self, path: str) -> Fault | None:
        """Take one of the faults that lie in wait for GET requests of this path."""
        fault = self.hub.faults.get(path) if self.command == "GET" else None
        if fault is None or fault.times <= 0:
            return None
        fault.times -= 1
        return fault

    def _describe(self, kind: str, name: str, revision: str) -> None:
        """Answer /api/KIND/OWNER/NAME/revision/REV (with blobs) and /api/KIND/OWNER/NAME/tree/REV."""
        repository = self.hub.repository(kind, name)
        if repository is None:
            self._send(401, b'{"error":"Repository not found"}', {"X-Error-Code": "RepoNotFound"})
            return
        if revision not in ("main", repository.commit):
            self._send(404, b'{"error":"Invalid rev"}', {"X-Error-Code": "RevisionNotFound"})
            return
        described = [_described(path, repository) for path in sorted(repository.files)]
        if "/tree/" in self.path:
            renamed = [{"path": said.pop("rfilename"), "oid": said.pop("blobId")} | said for said in described]
            answer: object = [{"type": "file"} | said for said in renamed]
        else:
            told = {"id": name, "sha": repository.commit, "private": repository.private}
            answer = told | {"siblings": described}
        self._send(200, json.dumps(answer).encode(), {"Content-Type": "application/json"})

    def _resolve(self, parts: list[str], fault: Fault | None) -> None:
        """Answer [/datasets]/OWNER/NAME/resolve/REV/FILE; large files by a redirect to the CDN, where there is one."""
        at = parts.index("resolve")
        kind, path = "datasets" if parts[0] == "datasets" else "models", "/".join(parts[at + 2 :])
        repository = self.hub.repository(kind, "/".join(parts[at - 2 : at]))
        if repository is None or parts[at + 1] not in ("main", repository.commit) or path not in repository.files:
            self._send(404, b"", {"X-Error-Code": "EntryNotFound"})
            return
        content = repository.files[path]
        headers = {"X-Repo-Commit": repository.commit, "ETag": f'"{hashlib.sha1(content).hexdigest()}"'}
        if path in repository.large and self.hub.cdn:
            linked = {"X-Linked-Size": str(len(content)), "X-Linked-ETag": f'"{hashlib.sha256(content).hexdigest()}"'}
            self._send(302, b"", headers | linked | {"Location": f"{self.hub.cdn}/cdn/{path}?signature=secret"})
            return
        self._send_file("/" + "/".join(parts), content, headers, fault)

    def _send_file(self, path: str, content: bytes, headers: dict[str, str], fault: Fault | None) -> None:
        """Send a file or the part of it that was asked for, unless Range is ignored here."""
        content = content if fault is None or fault.instead is None else fault.instead
        asked = self.headers.get("Range", "")
        if not asked or self.hub.ignores_range:
            self._send(200, content, headers, fault, path)
            return
        first, _, last = asked.removeprefix("bytes=").partition("-")
        start, end = int(first), min(int(last) + 1 if last else len(content), len(content))
        if start >= len(content):
            self._send(416, b"", {"Content-Range": f"bytes */{len(content)}"})
            return
        told = {"Content-Range": f"bytes {start}-{end - 1}/{len(content)}", "Accept-Ranges": "bytes"}
        self._send(206, content[start:end], headers | told, fault, path)

    def _send(
        self, status: int, body: bytes, headers: Mapping[str, str] = NOTHING, fault: Fault | None = None, path: str = ""
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        whole = len(body)
        if fault and fault.cut_after_bytes is not None:
            body = body[: fault.cut_after_bytes]
        try:
            for at in range(0, len(body), 1 << 16):
                self.wfile.write(body[at : at + (1 << 16)])
                self.hub.sent_bytes[path] += len(body[at : at + (1 << 16)])
            self.wfile.flush()
            if fault and fault.stall_seconds:
                time.sleep(fault.stall_seconds)
        except ConnectionError:
            # The client had enough: it asked for a beginning and Range is ignored here.
            self.close_connection = True
        if len(body) < whole:
            self.close_connection = True


def _described(path: str, repository: Repository) -> dict[str, object]:
    """Return what the Hub says of a file; of large ones also the SHA-256."""
    content = repository.files[path]
    said: dict[str, object] = {"rfilename": path, "size": len(content), "blobId": hashlib.sha1(content).hexdigest()}
    if path in repository.large:
        sha256 = hashlib.sha256(content).hexdigest()
        lfs = {"size": len(content), "pointerSize": 134}
        # The two answers of the Hub name the same thing differently.
        said["lfs"] = lfs | {"sha256": sha256, "oid": sha256}
    return said
