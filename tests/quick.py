"""Measuring and learning take long for the sake of precision, which no test needs."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

from forked import Popen

from costlib.features import build
from costlib.measure import client, jobs, measurer
from costlib.models import fine_tuning, gbdt
from costlib.models.baselines import statement_gbdt
from costlib.tuning import comparison, networks, rivals, run
from costlib.tvm_compat import rpc

_FEW_TREES = 100


def measure_quickly(set_to: Callable[[Any, str, Any], None]) -> None:
    """Sample less, and fork the processes that are started.

    Parameters
    ----------
    set_to
        Sets an attribute, as ``setattr`` does.
    """
    set_to(measurer, "_CALIBRATION_SAMPLES", 10)
    set_to(jobs, "_MAX_CALLS", 20)
    set_to(run, "_MOST_CHECKS", 0)
    set_to(comparison, "_FIRST_TURNS", 1)
    set_to(comparison, "_MOST_TURNS", 1)
    set_to(rivals, "_is_undisturbed", lambda settings: True)
    set_to(networks, "_MOST_CLOSE", 1)
    forking = SimpleNamespace(**vars(subprocess) | {"Popen": Popen})
    for module in (build, client, rpc):
        set_to(module, "subprocess", forking)


def learn_quickly(set_to: Callable[[Any, str, Any], None]) -> None:
    """Grow fewer trees where a test does not say how many."""
    for module, by_default in ((gbdt, 400), (statement_gbdt, 300)):
        set_to(module, "grow", partial(_grow_few, module.grow, by_default))
    set_to(fine_tuning, "_TREES", (10, 30))


def _grow_few(
    grow: Callable[..., Any],
    by_default: int,
    what: str,
    parameters: Any,
    data: Any,
    rounds: int,
    **more: Any,
) -> Any:
    few = rounds if rounds < by_default else _FEW_TREES
    return grow(what, parameters, data, few, **more)
