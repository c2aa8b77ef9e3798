"""What the loopback Hub does with what a client sends: repositories, large files by LFS, commits, validated cards."""

import base64
import hashlib
import json
from typing import TYPE_CHECKING, cast

import yaml

if TYPE_CHECKING:
    from tests.hub_server import Hub, Repository

Answer = tuple[int, dict[str, object]]


def take(hub: "Hub", path: str, body: bytes) -> Answer:
    """Return status and answer of a POST or PUT; what it sends is then in the hub."""
    if path.startswith("/lfs/"):
        return _large_file(hub, path.removeprefix("/lfs/"), body)
    if path == "/api/repos/create":
        return _create(hub, json.loads(body))
    if path == "/api/validate-yaml":
        return _validate(json.loads(body)["content"])
    parts = path.strip("/").split("/")
    if path.endswith(".git/info/lfs/objects/batch"):
        return _batch(hub, json.loads(body))
    repository = hub.datasets["/".join(parts[2:4])]
    if parts[4] == "preupload":
        files = json.loads(body)["files"]
        return 200, {"files": [_mode(file, repository) for file in files]}
    return _commit(hub, "/".join(parts[2:4]), [json.loads(line) for line in body.splitlines()])


def _mode(file: dict[str, object], repository: "Repository") -> dict[str, object]:
    """Say how a file is to be sent: Parquet as a large file; of one that is there, which content it has."""
    path = str(file["path"])
    said: dict[str, object] = {"path": path, "shouldIgnore": False}
    said["uploadMode"] = "lfs" if path.endswith(".parquet") else "regular"
    if path in repository.files:
        content = repository.files[path]
        whole = hashlib.sha256(content).hexdigest()
        blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
        said["oid"] = whole if said["uploadMode"] == "lfs" else blob
    return said


def _create(hub: "Hub", asked: dict[str, str]) -> Answer:
    from tests.hub_server import Repository

    name = f"{asked['organization']}/{asked['name']}"
    if name in hub.datasets:
        return 409, {"error": "You already created this dataset repo", "url": f"{hub.address}/datasets/{name}"}
    hub.datasets[name] = Repository({}, private=asked.get("visibility") == "private")
    return 200, {"url": f"{hub.address}/datasets/{name}"}


def _validate(card: str) -> Answer:
    """Refuse a card whose front matter is no YAML mapping with licences and configs."""
    try:
        front = yaml.safe_load(card.split("---\n")[1])
        wrong = [] if {"license", "configs"} <= set(front) else ["license and configs are missing"]
    except (yaml.YAMLError, IndexError, TypeError) as error:
        wrong = [str(error)]
    return (400 if wrong else 200), {"errors": [{"message": text} for text in wrong], "warnings": []}


def _batch(hub: "Hub", asked: dict[str, object]) -> Answer:
    """Say where large files go; one that is here has no place to go to."""
    objects = cast(list[dict[str, object]], asked["objects"])
    for wanted in objects:
        if wanted["oid"] not in hub.large_files:
            wanted["actions"] = {"upload": {"href": f"{hub.address}/lfs/{wanted['oid']}", "header": {}}}
    return 200, {"objects": objects, "transfer": "basic"}


def _large_file(hub: "Hub", name: str, body: bytes) -> Answer:
    """Keep a large file, unless uploads are to be lost."""
    if hub.lost_uploads:
        hub.lost_uploads -= 1
        return 403, {"error": "the upload was stopped"}
    assert hashlib.sha256(body).hexdigest() == name
    hub.large_files[name] = body
    return 200, {}


def _commit(hub: "Hub", name: str, lines: list[dict[str, dict[str, str]]]) -> Answer:
    """Take all changes of a commit, or none."""
    repository = hub.datasets[name]
    files, changed = dict(repository.files), []
    for line in lines[1:]:
        value, path = line["value"], line["value"]["path"]
        changed.append(f"{line['key']} {path}")
        if line["key"] == "deletedFile":  # type: ignore[comparison-overlap]
            del files[path]
        else:
            large = line["key"] == "lfsFile"  # type: ignore[comparison-overlap]
            files[path] = hub.large_files[value["oid"]] if large else base64.b64decode(value["content"])
    repository.files = files
    repository.commit = hashlib.sha1(json.dumps(changed).encode()).hexdigest()
    hub.commits.append((lines[0]["value"]["summary"], changed))
    told = {"commitUrl": f"{hub.address}/datasets/{name}/commit/{repository.commit}", "commitOid": repository.commit}
    return 200, {"success": True, **told}
