"""Addresses, and the cache of what was fetched from them."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs

from costlib.errors import CostlibError, HubError, StorageError
from costlib.identity import content_id

CACHE_VARIABLE = "COSTLIB_CACHE"
"""Environment variable with the folder of the cache; the user's cache folder by default."""

HF = "hf://"
"""How addresses on the Hugging Face hub begin."""

KINDS = ("bundles", "datasets")
"""What is fetched, each kind in a folder of its own."""

TASK_LISTS = "tasks"
"""The cache's folder with what networks of the zoo consist of."""

_FULL = {errno.ENOSPC, errno.EDQUOT}


def is_url(name: object) -> bool:
    """Whether this is an address, such as ``hf://user/name`` or ``s3://bucket/name``."""
    return "://" in str(name)


def cache_root() -> Path:
    """Return the folder of the cache, whether there is one or not."""
    return Path(os.environ.get(CACHE_VARIABLE) or platformdirs.user_cache_dir("costlib"))


def cache_folder(kind: str, url: str) -> Path:
    """Return where the copy of an address is kept, whether there is one or not.

    Parameters
    ----------
    kind
        One of :data:`KINDS`.
    url
        The address.
    """
    return cache_root() / kind / content_id(url)


def nothing_at(url: str, kind: str, manifest: str) -> str:
    """Say that there is no bundle or dataset at an address."""
    mend = "; if it is private, log in with `hf auth login`" if url.startswith(HF) else ""
    return f"there is no {kind} at {url}: {manifest} is missing{mend}"


@contextmanager
def remote_errors(url: str) -> Iterator[None]:
    """Turn what the libraries beneath raise into a :class:`HubError` about ``url``.

    A full disk here becomes a :class:`StorageError`: the address is not to blame for it.
    """
    try:
        yield
    except CostlibError:
        raise
    except ImportError as error:
        raise HubError(f"{url} needs a package that is not installed: {error}") from None
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _FULL:
            raise StorageError(
                f"no space is left for what was to be copied: {url}; "
                "free some space, then run it again"
            ) from error
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise HubError(f"{url} cannot be reached: {reason}") from None
