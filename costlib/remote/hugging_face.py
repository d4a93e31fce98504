"""Repositories on the Hugging Face hub.

What is published is one commit. What is fetched comes through ``huggingface_hub``'s own cache,
which has each content once, whichever commits and programs it belongs to; from there it is
linked, and nothing is ever written into it.
"""

from __future__ import annotations

import glob
import hashlib
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, snapshot_download
from huggingface_hub.errors import (
    GatedRepoError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from costlib.errors import HubError
from costlib.remote.address import HF
from costlib.remote.place import Entry, Place, link_file

_SHA256_DIGITS = 64


class HuggingFacePlace(Place):
    """A repository. Between two calls of :meth:`entries`, it is seen as of one commit.

    That is the newest, or the one that a pinned address names: ``hf://user/name@REVISION``, which
    is a commit, a tag or a branch. Nothing is written to a pinned address.
    """

    keeps_history = True

    def __init__(self, url: str, repo_type: str) -> None:
        super().__init__(url)
        name = url.removeprefix(HF).removeprefix(f"{repo_type}s/").rstrip("/")
        self._name, _, self._revision = name.partition("@")
        self._repo_type = repo_type
        self._commit: str | None = None
        self._entries: dict[str, Entry] | None = None

    @property
    def revision(self) -> str | None:  # noqa: D102
        return self._commit

    def entries(self) -> dict[str, Entry]:  # noqa: D102
        api = HfApi()
        describe = api.dataset_info if self._repo_type == "dataset" else api.model_info
        try:
            info = describe(self._name, revision=self._revision or None, files_metadata=True)
        except GatedRepoError:
            raise
        except RevisionNotFoundError:
            reason = f"{HF}{self._name} has no revision {self._revision}"
            raise HubError(f"{reason}; give a commit, a tag or a branch") from None
        except RepositoryNotFoundError:
            self._commit, self._entries = None, {}
        else:
            self._commit = info.sha
            self._entries = {
                file.rfilename: Entry(file.size or 0, file.lfs.sha256 if file.lfs else file.blob_id)
                for file in info.siblings or ()
            }
        return self._entries

    def get(self, names: Sequence[str], scratch: Path) -> Iterator[tuple[str, Path]]:  # noqa: D102
        known = self.entries() if self._entries is None else self._entries
        for name in names:
            if name not in known:
                raise FileNotFoundError(f"{name} is missing")
        if names:  # No patterns would mean all files.
            snapshot = self._download(names)
            damaged = [n for n in names if not _is_sound(snapshot / n, known[n])]
            if damaged:  # In the hub's cache, which takes whatever it has for what it fetched.
                self._download(damaged, anew=True)
            for name in names:
                link_file((snapshot / name).resolve(), scratch / "file")
                yield name, scratch / "file"

    def _download(self, names: Sequence[str], *, anew: bool = False) -> Path:
        snapshot = snapshot_download(
            self._name,
            repo_type=self._repo_type,
            revision=self._commit,
            allow_patterns=[glob.escape(name) for name in names],
            force_download=anew,
        )
        return Path(snapshot)

    def put(  # noqa: D102
        self, folder: Path, names: Sequence[str], gone: Sequence[str], message: str
    ) -> None:
        if self._revision:
            raise HubError(
                f"{self.url} is one revision, which stays as it is; publish to {HF}{self._name}"
            )
        api = HfApi()
        api.create_repo(self._name, repo_type=self._repo_type, exist_ok=True)
        with warnings.catch_warnings():
            # A bundle has a little parquet, too, but is no dataset.
            warnings.filterwarnings("ignore", message=".*commit a data file")
            # Not `upload_folder`, which makes several commits of many files.
            api.create_commit(
                self._name,
                [
                    *(CommitOperationAdd(name, folder / name) for name in names),
                    *(CommitOperationDelete(name) for name in gone),
                ],
                commit_message=message,
                repo_type=self._repo_type,
                parent_commit=self._commit,
            )


def models_of(library: str, user: str | None) -> list[str]:
    """List the addresses of a library's models, of one user or of all."""
    return [f"{HF}{found.id}" for found in HfApi().list_models(filter=library, author=user)]


def _is_sound(file: Path, entry: Entry) -> bool:
    """Whether a file is what the hub has: by its SHA-256, or its SHA-1 as git computes it."""
    if not file.is_file() or file.stat().st_size != entry.size:
        return False
    is_large = len(entry.mark or "") == _SHA256_DIGITS
    digest = hashlib.sha256() if is_large else hashlib.sha1(usedforsecurity=False)
    if not is_large:
        digest.update(b"blob %d\0" % entry.size)
    with file.open("rb") as stream:
        while part := stream.read(1 << 20):
            digest.update(part)
    return digest.hexdigest() == entry.mark
