"""The networks of a tuning run, and the tasks that they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from costlib.arrays import Integers
from costlib.errors import InputError
from costlib.hardware import Hardware
from costlib.measure.cold_weights import as_called
from costlib.measure.config import MeasureConfig
from costlib.schema import CacheState
from costlib.search.tasks.planning import lesser_trials
from costlib.tuning.mixing import slower_by_winograd
from costlib.workloads import Network, load_network, prepare_network
from costlib.workloads.extraction import tasks_of
from costlib.workloads.half_precision import HalfFormat
from costlib.workloads.in_layouts import in_layouts
from costlib.workloads.layout_choice import Layouts
from costlib.workloads.ranges.dimension import Dims
from costlib.workloads.ranges.ranged import RangedNetwork, at_points
from costlib.workloads.ranges.symbolic import symbolic
from costlib.workloads.small_weights import WeightFormat
from costlib.workloads.task import Task
from costlib.workloads.variants import with_dtype, with_weights
from costlib.workloads.winograd import WINOGRAD, by_winograd

_CLOSE = 1.15
"""What the tasks of a version add up to, at most, relative to the fastest one's."""

_MOST_CLOSE = 3

_USUAL_PER_TASK = 16


@dataclass(frozen=True)
class NetworkSet:
    """Networks that are tuned together.

    Attributes
    ----------
    networks, prepared
        The networks as imported, and as Relax modules that are ready to be compiled.
    source_of
        Which source each network is a version of.
    tasks
        The tasks of all of them, each once; the weight is that of all networks together.
    calls
        int64 `networks x tasks`: how often a network calls a task.
    ranges
        Networks whose dimensions have ranges, each with the number of the network that is its first
        point; those of the others follow.
    """

    networks: Sequence[Network]
    prepared: Sequence[Any]
    source_of: Sequence[int]
    tasks: Sequence[Task]
    calls: Integers
    ranges: Sequence[tuple[int, RangedNetwork]] = ()

    @classmethod
    def load(
        cls,
        sources: Sequence[Any],
        hardware: Hardware,
        *,
        layouts: Layouts = "given",
        weights: WeightFormat | None = None,
        dtype: HalfFormat | None = None,
        dims: Dims | None = None,
        trials: int | None = None,
        fixed_for: str | None = None,
        example_inputs: Sequence[Any] | Mapping[str, Any] | None = None,
    ) -> NetworkSet:
        """Import networks.

        Parameters
        ----------
        sources, example_inputs
            See :func:`costlib.workloads.load_network`.
        hardware
            What to prepare them for.
        layouts
            See :func:`costlib.workloads.in_layouts.in_layouts`.
        weights
            In how many bits weights are kept, if not as they are.
        dtype
            What products multiply, if not what they do.
        dims, trials
            Ranges of dimensions, by their names; and what a run has to measure, the usual trials by
            default, which says how many points they have: each task of a point that is not the
            largest gets a trial at least.
        fixed_for
            A setting for which there must be none.
        """

        def varied(network: Network) -> Network:
            return with_dtype(with_weights(network, weights), dtype)

        def affordable(largest: Network) -> int:
            tasks = len(tasks_of(prepare_network(varied(largest), hardware), hardware.target))
            return 1 + lesser_trials(trials or _usual_trials(tasks, 2)) // max(tasks, 1)

        loaded: list[Network] = []
        ranges: list[tuple[int, RangedNetwork]] = []
        for source in sources:
            if (program := symbolic(source, dims or {})) is not None:
                if fixed_for is not None:
                    raise InputError(
                        f"{fixed_for} takes networks of fixed shapes; {program.name} has ranges"
                    )
                found = at_points(program, affordable).rounded(weights, dtype)
                ranges.append((len(loaded), found))
                loaded += found.networks
            else:
                loaded.append(load_network(source, example_inputs=example_inputs))
        of_points = {
            first + number for first, found in ranges for number in range(len(found.networks))
        }
        versions = []
        for number, network in enumerate(loaded):
            found_in = in_layouts(varied(network), hardware, layouts)
            versions.append(list(islice(found_in, 1 if number in of_points else None)))
        networks = [network for group in versions for network, _ in group]
        for number, (first, found) in enumerate(ranges):  # Whose points have one version each.
            points = tuple(networks[first : first + len(found.networks)])
            ranges[number] = first, replace(found, networks=points)
        source_of = [number for number, group in enumerate(versions) for _ in group]
        prepared = [module for group in versions for _, module in group]
        extracted = [tasks_of(module, hardware.target) for module in prepared]
        distinct = {task.workload_id: task for tasks in extracted for task in tasks}
        calls = np.zeros((len(networks), len(distinct)), "int64")
        places = {workload_id: place for place, workload_id in enumerate(distinct)}
        for row, tasks in zip(calls, extracted, strict=True):
            for task in tasks:
                row[places[task.workload_id]] = task.weight
        counts = calls.sum(0).tolist()
        merged = [task.times(n) for task, n in zip(distinct.values(), counts, strict=True)]
        return cls(networks, prepared, source_of, merged, calls, ranges)

    def as_called(self, hardware: Hardware, config: MeasureConfig) -> NetworkSet:
        """Note with each task what it finds in the caches, see :mod:`costlib.measure.cold_weights`.

        Of networks that share a task the one with the most weights counts.
        """
        network_bytes = ((self.calls > 0) * self.weight_bytes[:, None]).max(0, initial=0)
        tasks = as_called(self.tasks, network_bytes.tolist(), hardware, config)
        return replace(self, tasks=tasks)

    @property
    def weight_bytes(self) -> Integers:
        """Size of the weights that each network reads, int64 `networks`.

        A task that computes nothing, such as a look-up, reads little of its weights.
        """
        weights = np.array([t.weight_bytes if t.flops else 0 for t in self.tasks], "int64")
        found: Integers = self.calls @ weights
        return found

    @property
    def has_cold_weights(self) -> bool:
        """Whether there is a task whose weights come from memory."""
        return any(task.cache is CacheState.COLD_WEIGHTS for task in self.tasks)

    def range_of(self, network: int) -> RangedNetwork | None:
        """Return the network with ranges that a network is a point of."""
        for first, found in self.ranges:
            if first <= network < first + len(found.networks):
                return found
        return None

    def served_by(self, latency_s: Sequence[float]) -> NetworkSet:
        """Let larger points serve where they are faster, with these latencies of the tasks."""
        called_s = (self.calls * np.where(self.calls > 0, np.array(latency_s), 0)).sum(1)
        ranges = [
            (first, found.served_by(called_s[first : first + len(found.networks)].tolist()))
            for first, found in self.ranges
        ]
        return replace(self, ranges=ranges)

    def serves(self, network: int) -> bool:
        """Whether a network is compiled in the end: not if larger points of its range serve."""
        found = self.range_of(network)
        if found is None:
            return True
        function = found.functions[network - self.first_point(found)]
        return function in {point.function for point in found.table.points}

    def is_inner_point(self, name: str) -> bool:
        """Whether a network is a point of a range and neither the least nor the largest."""
        inner = [network for _, found in self.ranges for network in found.networks[1:-1]]
        return name in {network.name for network in inner}

    def first_point(self, network: RangedNetwork) -> int:
        """Return the number of the network that is the first point of a range."""
        return next(first for first, found in self.ranges if found is network)

    @property
    def file_count(self) -> int:
        """How many compiled networks there are in the end."""
        points = sum(len(found.networks) - 1 for _, found in self.ranges)
        return len(set(self.source_of)) - points

    @cached_property
    def lesser_tasks(self) -> set[int]:
        """Return the tasks that only points other than the largest of their ranges have."""
        main = np.ones(len(self.networks), bool)
        for first, found in self.ranges:
            main[first : first + len(found.networks) - 1] = False
        return set(np.flatnonzero(~(self.calls[main] > 0).any(0)).tolist())

    @property
    def usual_trials(self) -> int:
        """How many programs a run measures if nobody says: 16 of each task.

        Of a network's versions the first counts. The lesser points of ranges get as many again.
        """
        first = sorted({self.given(network) for network in range(len(self.networks))})
        called = set(np.flatnonzero(self.calls[first].sum(0)).tolist())
        return _usual_trials(len(called - self.lesser_tasks), 2 if self.ranges else 1)

    @property
    def names(self) -> list[str]:
        """What the networks are called."""
        return [network.name for network in self.networks]

    def given(self, network: int) -> int:
        """Return which network is the source of this one as it was given."""
        return self.source_of.index(self.source_of[network])

    def fastest(self, latency_s: Sequence[float]) -> list[list[int]]:
        """Return of each source its fastest versions with these latencies of the tasks.

        First the fastest, then those that would take little longer.
        """
        called_s = self.calls * np.where(self.calls > 0, np.array(latency_s), 0)
        taken_s = called_s.sum(1)
        found = []
        for source in range(max(self.source_of) + 1):
            versions = [v for v, of in enumerate(self.source_of) if of == source]
            versions.sort(key=lambda version: taken_s[version])
            most_s = _CLOSE * taken_s[versions[0]]
            found.append([v for v in versions if taken_s[v] <= most_s][:_MOST_CLOSE])
        return found

    def mixed(self, latency_s: Sequence[float], hardware: Hardware) -> NetworkSet:
        """Add versions in which what takes longer by Winograd's algorithm is not computed so.

        Parameters
        ----------
        latency_s
            Seconds of each task, by which that is decided.
        hardware
            What to prepare them for.
        """
        found = self
        numbers = {network.name: number for number, network in enumerate(self.networks)}
        for network in self.networks:
            plain = numbers.get(network.name.removesuffix(f"+{WINOGRAD}"))
            if network.name.endswith(WINOGRAD) and plain is not None:
                found = found._mixed(plain, network.name, latency_s, hardware)
        return found

    def _mixed(
        self, plain: int, name: str, latency_s: Sequence[float], hardware: Hardware
    ) -> NetworkSet:
        mod = self.networks[plain].mod
        kinds = by_winograd(mod)[1]
        slower = slower_by_winograd(kinds, self.tasks, latency_s)
        if not slower or slower == kinds:
            return self
        network = replace(
            self.networks[plain], name=f"{name} (mixed)", mod=by_winograd(mod, slower)[0]
        )
        prepared = prepare_network(network, hardware)
        weights = {task.workload_id: task.weight for task in tasks_of(prepared, hardware.target)}
        if not weights.keys() <= {task.workload_id for task in self.tasks}:
            return self
        row = np.array([weights.get(task.workload_id, 0) for task in self.tasks], "int64")
        return replace(
            self,
            networks=[*self.networks, network],
            prepared=[*self.prepared, prepared],
            source_of=[*self.source_of, self.source_of[plain]],
            calls=np.vstack([self.calls, row]),
        )

    def calls_of(self, task: int) -> dict[str, int]:
        """Return how often each network calls a task."""
        return {
            network.name: int(count)
            for network, count in zip(self.networks, self.calls[:, task], strict=True)
            if count
        }


def _usual_trials(tasks: int, shares: int) -> int:
    return max(1, _USUAL_PER_TASK * tasks * shares)
