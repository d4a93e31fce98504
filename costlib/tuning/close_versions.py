"""Versions of a network of which sums over tasks cannot tell which is faster: they are timed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from costlib.errors import InputError, MeasureError
from costlib.measure.measurer import Measurer
from costlib.scratch import ScratchFolder
from costlib.tuning.traces import Traced
from costlib.tuning.turns import Contestant, take_turns

_MOST_TURNS = 9

_log = logging.getLogger(__name__)


def fastest_version(builds: Sequence[Callable[[Path], object]], measurer: Measurer) -> int:
    """Compile versions of a network, and run them in turns.

    Parameters
    ----------
    builds
        Each compiles a version to a file.
    measurer
        Runs them, on this machine.

    Returns
    -------
    int
        The fastest; the first if one of them does not run, or does not tell.
    """
    with ScratchFolder() as folder:
        libraries = [folder / f"version-{number}.so" for number in range(len(builds))]
        try:
            for build, library in zip(builds, libraries, strict=True):
                build(library)
            versions = [Contestant(Traced(one, measurer, folder).plain) for one in libraries]
            take_turns(versions, _MOST_TURNS)
        except (InputError, MeasureError) as error:
            _log.info("the versions of a network are not timed: %s", error)
            return 0
    return int(np.argmin([one.latency_s for one in versions]))
