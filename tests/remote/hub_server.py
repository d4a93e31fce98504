"""A Hugging Face hub on 127.0.0.1: what `huggingface_hub` needs to publish, list and fetch."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

LFS = (".parquet", ".safetensors")
"""What the hub keeps in large file storage here."""

_API = re.compile(
    r"/api/(?P<kind>models|datasets)/(?P<name>[^/]+/[^/]+)(?:/(?P<what>\w+)/(?P<revision>[^/]+))?"
)
_RESOLVE = re.compile(
    r"/(?P<kind>datasets/)?(?P<name>[^/]+/[^/]+)/resolve/(?P<sha>\w+)/(?P<path>.+)"
)
_BATCH = re.compile(r"/(?:datasets/)?[^/]+/[^/]+\.git/info/lfs/objects/batch")


class File(NamedTuple):
    content: bytes
    is_lfs: bool

    @property
    def git_hash(self) -> str:
        return hashlib.sha1(b"blob %d\0" % len(self.content) + self.content).hexdigest()

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @property
    def etag(self) -> str:
        return self.sha256 if self.is_lfs else self.git_hash


class Commit(NamedTuple):
    sha: str
    message: str
    files: dict[str, File]


class HubServer:
    """The hub's state, and what it was asked.

    Attributes
    ----------
    commits
        Of each repository, by kind (``models``, ``datasets``) and name; the newest last.
    sent
        The files whose contents were asked for, in order.
    secret
        Repositories that the client may not see.
    meanwhile
        Called once, at the next upload or download of a file.
    """

    def __init__(self) -> None:
        self.commits: dict[tuple[str, str], list[Commit]] = {}
        self.stored: dict[str, bytes] = {}
        self.sent: list[str] = []
        self.secret: set[str] = set()
        self.meanwhile: Callable[[], object] | None = None
        self._http: ThreadingHTTPServer | None = None
        self._port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        self._http = ThreadingHTTPServer(
            ("127.0.0.1", self._port), type("", (_Handler,), {"hub": self})
        )
        self._port = self._http.server_port
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    def stop(self) -> None:
        if self._http is not None:
            self._http.shutdown()
            self._http.server_close()
            self._http = None

    @contextmanager
    def gone(self) -> Iterator[None]:
        self.stop()
        yield
        self.start()

    def interrupt(self) -> None:
        """Let something happen in between, if a test wants that."""
        action, self.meanwhile = self.meanwhile, None
        if action is not None:
            action()

    def head(self, kind: str, name: str) -> Commit:
        return self.commits[kind, name][-1]

    def commit(self, kind: str, name: str, message: str, files: Mapping[str, File]) -> Commit:
        """Add a commit with exactly these files."""
        history = self.commits.setdefault((kind, name), [])
        sha = hashlib.sha1(f"{kind} {name} {len(history)}".encode()).hexdigest()
        history.append(Commit(sha, message, dict(files)))
        return history[-1]

    def change(self, kind: str, name: str, path: str, content: bytes | None) -> None:
        """Change or remove a file behind costlib's back."""
        files = dict(self.head(kind, name).files)
        if content is None:
            del files[path]
        else:
            files[path] = File(content, path.endswith(LFS))
        self.commit(kind, name, "by hand", files)


def _card(commit: Commit) -> bytes:
    return commit.files["README.md"].content if "README.md" in commit.files else b""


class _Handler(BaseHTTPRequestHandler):
    hub: HubServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        if path == "/api/models":
            self._list(parse_qs(urlsplit(self.path).query))
        elif found := _RESOLVE.fullmatch(path):
            self._resolve(found["kind"] or "models/", found["name"], found["sha"], found["path"])
        elif (found := _API.fullmatch(path)) and found["name"] not in self.hub.secret:
            self._describe(*found.group("kind", "name", "what", "revision"))
        else:
            self._missing()

    do_HEAD = do_GET

    def do_PUT(self) -> None:
        self.hub.stored[self.path.rpartition("/")[2]] = self._body()
        self._answer({})

    def do_POST(self) -> None:
        path = unquote(urlsplit(self.path).path)
        body = self._body()
        if path == "/api/validate-yaml":
            self._answer({"errors": [], "warnings": []})
        elif path == "/api/repos/create":
            self._create(json.loads(body))
        elif _BATCH.fullmatch(path):
            self._batch(json.loads(body))
        elif (found := _API.fullmatch(path)) and found["what"] == "preupload":
            self._preupload(found["kind"], found["name"], json.loads(body))
        elif found and found["what"] == "commit":
            lines = [json.loads(line) for line in body.splitlines()]
            self._commit(found["kind"], found["name"], lines)
        else:
            self._missing()

    def _create(self, wanted: Any) -> None:
        kind = f"{wanted.get('type', 'model')}s"
        name = f"{wanted['organization']}/{wanted['name']}"
        status = 409
        if (kind, name) not in self.hub.commits:
            status = 200
            self.hub.commit(kind, name, "initial", {".gitattributes": File(b"*.parquet\n", False)})
        prefix = "" if kind == "models" else f"{kind}/"
        self._answer({"url": f"{self.hub.url}/{prefix}{name}"}, status)

    def _preupload(self, kind: str, name: str, wanted: Any) -> None:
        known = self.hub.head(kind, name).files
        answers = [
            {
                "path": file["path"],
                "uploadMode": "lfs" if file["path"].endswith(LFS) else "regular",
                "shouldIgnore": False,
                "oid": known[file["path"]].etag if file["path"] in known else None,
            }
            for file in wanted["files"]
        ]
        self.hub.interrupt()
        self._answer({"files": answers})

    def _batch(self, wanted: Any) -> None:
        objects = []
        for one in wanted["objects"]:
            upload = {"upload": {"href": f"{self.hub.url}/store/{one['oid']}"}}
            objects.append(one if one["oid"] in self.hub.stored else one | {"actions": upload})
        self._answer({"transfer": "basic", "objects": objects})

    def _commit(self, kind: str, name: str, lines: list[Any]) -> None:
        head = self.hub.head(kind, name)
        header = lines[0]["value"]
        if header.get("parentCommit", head.sha) != head.sha:
            self._answer(
                {"error": "A commit has happened since. Please refresh and try again."}, 412
            )
            return
        files = dict(head.files)
        for line in lines[1:]:
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = File(base64.b64decode(value["content"]), False)
            elif line["key"] == "lfsFile":
                files[value["path"]] = File(self.hub.stored[value["oid"]], True)
            else:
                del files[value["path"]]
        commit = self.hub.commit(kind, name, header["summary"], files)
        url = f"{self.hub.url}/{name}/commit/{commit.sha}"
        self._answer({"success": True, "commitOid": commit.sha, "commitUrl": url})

    def _list(self, query: Mapping[str, list[str]]) -> None:
        """Answer what the models are whose card names a library, of one user or of all."""
        (library,), author = query["filter"], query.get("author", [""])[0]
        self._answer(
            [
                {"_id": "1", "id": name, "tags": [library]}
                for (kind, name), history in self.hub.commits.items()
                if kind == "models"
                and name.startswith(f"{author}/" if author else "")
                and f"library_name: {library}\n".encode() in _card(history[-1])
            ]
        )

    def _describe(self, kind: str, name: str, what: str | None, revision: str | None) -> None:
        if (kind, name) not in self.hub.commits:
            self._missing()
            return
        head = self.hub.head(kind, name)
        if revision not in (None, "main"):
            history = self.hub.commits[kind, name]
            known = next((one for one in history if one.sha == revision), None)
            if known is None:
                self._missing("RevisionNotFound")
                return
            head = known
        siblings, tree = [], []
        for path, file in head.files.items():
            size, hashed = len(file.content), {"oid": file.sha256, "sha256": file.sha256}
            lfs = {"lfs": {"size": size, "pointerSize": 130, **hashed}} if file.is_lfs else {}
            siblings.append({"rfilename": path, "size": size, "blobId": file.git_hash, **lfs})
            tree.append({"type": "file", "path": path, "size": size, "oid": file.git_hash, **lfs})
        info = {"_id": "1", "id": name, "sha": head.sha, "private": False, "siblings": siblings}
        self._answer(
            tree if what == "tree" else info | {"disabled": False, "downloads": 0, "tags": []}
        )

    def _resolve(self, kind: str, name: str, sha: str, path: str) -> None:
        history = self.hub.commits.get((kind.rstrip("/"), name), [])
        file = next((c.files[path] for c in history if c.sha == sha and path in c.files), None)
        if file is None:
            self._missing("EntryNotFound")
            return
        if self.command == "GET":
            self.hub.sent.append(path)
            self.hub.interrupt()
        headers = {"ETag": f'"{file.etag}"', "X-Repo-Commit": sha}
        self._send(200, file.content, "application/octet-stream", headers)

    def _missing(self, code: str = "RepoNotFound") -> None:
        self._answer({"error": "not found"}, 404, {"X-Error-Code": code})

    def _answer(self, value: Any, status: int = 200, headers: Mapping[str, str] = {}) -> None:
        self._send(status, json.dumps(value).encode(), "application/json", headers)

    def _send(self, status: int, body: bytes, kind: str, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")  # A hub that is gone answers nobody any more.
        for key, value in headers.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body
