"""Versions of costlib's search that race each other: with each part alone, and without it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from costlib.hardware import Hardware
from costlib.hub.bundle import Bundle
from costlib.measure.measurer import Measurer
from costlib.search.config import SearchConfig
from costlib.workloads.task import Task
from tools.benchmarks.cases import Case
from tools.benchmarks.held_out import heaviest, tunable
from tools.benchmarks.race import Arm
from tools.benchmarks.sides import ours
from tools.evidence.protocol import (
    ABLATION_TRIALS,
    COLD,
    DIFFUSION,
    DIFFUSION_TRIALS,
    FULL,
    OF_A_BUNDLE,
    PARTS,
    PLAIN,
    changed,
    setting,
)

SEEDS = (0, 1)
DIFFUSION_NETWORKS = ("bert_tiny", "mobilenet_v2")

Version = tuple[Bundle | None, SearchConfig]
Versions = Callable[[Bundle], Mapping[str, Version]]


def ablation(
    hardware: Hardware, only: Sequence[str], seeds: Sequence[int] | None
) -> Iterator[Case]:
    """Yield single tasks with every version of costlib's search side by side."""
    yield from _of_heavy_tasks("ablation", with_and_without(PARTS), hardware, only, seeds)


def cold(hardware: Hardware, only: Sequence[str], seeds: Sequence[int] | None) -> Iterator[Case]:
    """Yield the same tasks, without a bundle."""
    yield from _of_heavy_tasks("cold", cold_versions, hardware, only, seeds)


def diffusion(
    hardware: Hardware, only: Sequence[str], seeds: Sequence[int] | None
) -> Iterator[Case]:
    """Yield whole networks with and without diffusion, which goes from task to task."""
    for network in DIFFUSION_NETWORKS:
        if network in only:
            tasks = tunable(network, hardware)
            trials = DIFFUSION_TRIALS * len(tasks)
            for seed in seeds or SEEDS:
                arms = racing(tasks, trials, seed, with_and_without(DIFFUSION))
                yield Case("diffusion", network, seed, tasks, arms)


def _of_heavy_tasks(
    kind: str,
    versions: Versions,
    hardware: Hardware,
    only: Sequence[str],
    seeds: Sequence[int] | None,
) -> Iterator[Case]:
    tasks = {network: heaviest(network, hardware, 2) for network in only}
    for seed in seeds or SEEDS:
        for network in only:
            for rank, task in enumerate(tasks[network]):
                arms = racing([task], ABLATION_TRIALS, seed, versions)
                yield Case(kind, f"{network}-{rank}", seed, [task], arms)


def racing(
    tasks: Sequence[Task], trials: int, seed: int, versions: Versions
) -> Callable[[Measurer, Bundle], list[Arm]]:
    """Return what makes a side of each version."""

    def arms(measurer: Measurer, bundle: Bundle) -> list[Arm]:
        return [
            ours(name, tasks, trials, seed, measurer, known, config)
            for name, (known, config) in versions(bundle).items()
        ]

    return arms


def with_and_without(parts: Mapping[str, Mapping[str, Any]]) -> Versions:
    """Return the plain loop with each part, and the full search without it."""
    return partial(_with_and_without, parts=parts)


def _with_and_without(bundle: Bundle, parts: Mapping[str, Mapping[str, Any]]) -> dict[str, Version]:
    versions: dict[str, Version] = {"plain": (bundle, PLAIN), "full": (bundle, FULL)}
    versions["cold"] = None, COLD
    for name, change in parts.items():
        versions[f"plain + {name}"] = bundle, changed(PLAIN, change)
        sign, config = _switched(change)
        versions[f"full {sign} {name}"] = bundle, config
    return versions


def cold_versions(bundle: Bundle) -> dict[str, Version]:
    """Return the same without a bundle; there the plain loop learns, as it has nothing else."""
    learning = changed(PLAIN, PARTS["correction"])
    versions: dict[str, Version] = {"full": (bundle, FULL), "cold": (None, COLD)}
    versions["cold-plain"] = None, learning
    for name, change in PARTS.items():
        if name not in OF_A_BUNDLE:
            sign, config = _switched(change, COLD)
            versions[f"cold {sign} {name}"] = None, config
            if name != "correction":
                versions[f"cold-plain + {name}"] = None, changed(learning, change)
    return versions


def _switched(change: Mapping[str, Any], full: SearchConfig = FULL) -> tuple[str, SearchConfig]:
    """Return the full search without a part, or with it if it is not in there."""
    less = changed(full, {field: setting(PLAIN, field) for field in change})
    return ("-", less) if less != full else ("+", changed(full, change))
