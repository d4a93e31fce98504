"""How much memory a child may take: what costlib allows it, or what the user does, if that is less.

Also asked before anything large is imported, which would end the process.
"""

from __future__ import annotations

import resource
from dataclasses import dataclass

import psutil

from costlib.errors import MeasureError

LEAST_BYTES = 4 << 30
"""Address space that the libraries take which every measuring command loads."""


@dataclass(frozen=True)
class MemoryLimit:
    """What a process may map.

    Attributes
    ----------
    bytes
        In all.
    is_ours
        Whether it is costlib's own limit, not a lower one that was there before.
    """

    bytes: int
    is_ours: bool

    @classmethod
    def of_child(cls, memory_bytes: int) -> MemoryLimit:
        """Allow this process so many bytes more than it has now, if it may have them."""
        ours = psutil.Process().memory_info().vms + memory_bytes
        theirs = _allowed_bytes(resource.RLIMIT_AS)
        return cls(ours, True) if theirs is None or ours <= theirs else cls(theirs, False)

    def impose(self) -> None:
        """Limit this process, for good."""
        limit_to(resource.RLIMIT_AS, self.bytes)


def limit_to(kind: int, most: int) -> None:
    """Limit a resource of this process, unless it is limited more already."""
    allowed = _allowed_bytes(kind)
    most = most if allowed is None else min(most, allowed)
    resource.setrlimit(kind, (most, most))


def check_address_space() -> None:
    """Raise :class:`MeasureError` if libraries cannot even be loaded."""
    allowed = _allowed_bytes(resource.RLIMIT_AS)
    if allowed is not None and allowed < LEAST_BYTES:
        raise MeasureError(
            f"`ulimit -v` allows {allowed >> 20} MiB of address space, and loading the libraries "
            f"takes {LEAST_BYTES >> 20}; raise it"
        )


def _allowed_bytes(kind: int) -> int | None:
    limits = [limit for limit in resource.getrlimit(kind) if limit != resource.RLIM_INFINITY]
    return min(limits, default=None)
