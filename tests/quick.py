"""What takes long for the sake of something that no test needs, done with less effort.

Measuring and learning want precision, a search good programs; PyTorch looks for operators anew in
each export, and disks keep what is written when the power fails.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from functools import cache, lru_cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from forked import Popen

from costlib.features import build
from costlib.measure import client, jobs, measurer
from costlib.models import fine_tuning, gbdt, trees
from costlib.models.baselines import statement_gbdt
from costlib.search.evolution.search import EvolutionarySearch, EvolutionConfig
from costlib.search.strategy import Strategy
from costlib.tuning import comparison, networks, rivals, run
from costlib.tvm_compat import rpc, tvm
from costlib.tvm_compat.api import plain

_FEW_TREES = 100
_FEW_CANDIDATES = EvolutionConfig(population=64, generations=2, early_survivors=2)


def measure_quickly(set_to: Callable[[Any, str, Any], None]) -> None:
    """Sample less, and fork the processes that are started.

    Parameters
    ----------
    set_to
        Sets an attribute, as ``setattr`` does.
    """
    set_to(measurer, "_CALIBRATION_SAMPLES", 10)
    set_to(jobs, "_MAX_CALLS", 20)
    set_to(jobs, "build_library", partial(_build_lightly, jobs.build_library))
    set_to(run, "_MOST_CHECKS", 0)
    set_to(comparison, "_FIRST_TURNS", 1)
    set_to(comparison, "_MOST_TURNS", 1)
    set_to(rivals, "_is_undisturbed", lambda settings: True)
    set_to(networks, "_MOST_CLOSE", 1)
    forking = SimpleNamespace(**vars(subprocess) | {"Popen": Popen})
    for module in (build, client, rpc):
        set_to(module, "subprocess", forking)


def learn_quickly(set_to: Callable[[Any, str, Any], None]) -> None:
    """Grow fewer trees where a test does not say how many; check those of a file once."""
    for module, by_default in ((gbdt, 400), (statement_gbdt, 300)):
        set_to(module, "grow", partial(_grow_few, module.grow, by_default))
    set_to(fine_tuning, "_TREES", 30)
    set_to(trees, "_checked", lru_cache(4)(trees._checked))


def search_quickly(set_to: Callable[[Any, str, Any], None]) -> None:
    """Let fewer candidates evolve where a test does not say how many."""
    set_to(EvolutionarySearch, "__init__", _search_few)


def write_quickly(set_to: Callable[[Any, str, Any], None]) -> None:
    """Leave it to the system when what is written goes to the disk: no test pulls the plug."""
    set_to(os, "fsync", lambda descriptor: None)


def export_quickly(set_to: Callable[[Any, str, Any], None]) -> None:
    """Look for PyTorch's operators once, and leave alone their kernels for devices of others."""
    from torch._C import DispatchKey
    from torch._export import utils as export_utils
    from torch.export import exported_program

    set_to(export_utils, "_materialize_cpp_cia_ops", cache(export_utils._materialize_cpp_cia_ops))
    autograd = [DispatchKey.AutogradCPU, DispatchKey.AutogradMeta]
    set_to(exported_program, "_AUTOGRAD_ALIAS_BACKEND_KEYS_TO_OVERRIDE", autograd)
    set_to(exported_program, "_BACKEND_KEYS_TO_OVERRIDE", [DispatchKey.CPU, DispatchKey.Meta])


def in_every_process(set_to: Callable[[Any, str, Any], None]) -> None:
    """Take all these short cuts but those of learning."""
    for quickly in (measure_quickly, search_quickly, export_quickly, write_quickly):
        quickly(set_to)


def _build_lightly(build: Callable[..., Any], mod: Any, target: Any, path: Path, **how: Any) -> Any:
    """Compile what is measured without optimisation; networks and canaries have it all."""
    if target.kind.name == "llvm":
        target = tvm.target.Target({**plain(target.export()), "opt-level": 0})
    return build(mod, target, path, **how)


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


def _search_few(
    search: EvolutionarySearch, task: Any, hardware: Any, model: Any, config: Any, seed: int = 0
) -> None:
    few = _FEW_CANDIDATES if config == EvolutionConfig() else config
    Strategy.__init__(search, task, hardware, model, few, seed)
