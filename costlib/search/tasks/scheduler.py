"""Which task to spend the next measurements on: Ansor's gradient descent (OSDI'20, section 6).

The objective is a function of the tasks' latencies; a task's turn comes when another batch of
it is expected to lower the objective most. What a batch brings is estimated from what the last ones
brought, from the hope that a latency falls in proportion to 1/trials, and from how far the
task is behind similar ones. That last hope fades with each batch that brings nothing (Ansor's does
not: a depthwise convolution, which cannot be as fast as others, would get nearly all trials).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Literal, NamedTuple, get_args

import numpy as np

from costlib.arrays import Floats, Integers

Objective = Literal["sum", "requirement", "speedup", "early-stop"]
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)

_ALPHA = 0.2
_BETA = 2.0
_BACKWARD = 3
"""Ansor's: trust in the past, optimism about similar tasks, batches that count as the past."""

_NEGLIGIBLE = 0.01
"""A smaller share is no gain, when a task is behind similar ones."""

_STALE_BATCHES = 6
"""A task that has not become faster for so many batches is given up by ``early-stop``."""

_INDIFFERENCE = 0.1
"""By what share an alternative may be slower before it counts less by a factor e."""

_ATTEMPTS = 3
"""Batches after which a task of which no program runs is left alone."""


class Choice(NamedTuple):
    """A task and what another batch of it is expected to bring.

    Attributes
    ----------
    task
        Its index.
    gain
        Share of the objective by which it is expected to fall; infinite for a first batch.
    """

    task: int
    gain: float

    def promises(self, min_gain: float) -> bool:
        """Whether the gain is one, and at least so much."""
        return self.gain > 0 and self.gain >= min_gain


class TaskScheduler:
    """Divides trials among the tasks of one or several networks.

    Parameters
    ----------
    weights
        float64 `networks x tasks`: how often a network calls a task.
    objective
        - ``sum``: the sum of all networks' latencies;
        - ``requirement``: the same, a network that is faster than required counting no less;
        - ``speedup``: the geometric mean of the networks' speed-ups against ``reference_s``;
        - ``early-stop``: ``sum``, without tasks that no longer become faster.
    required_s, reference_s
        Seconds of each network, for the objective of that name.
    alternatives
        Networks with the same number are versions of one, of which only the fastest matters; each
        stands alone by default.
    flops, similar
        Operations of each task, and the name of the group of similar tasks that it belongs to.
    """

    def __init__(
        self,
        weights: Floats,
        objective: Objective = "sum",
        *,
        required_s: Sequence[float] = (),
        reference_s: Sequence[float] = (),
        alternatives: Sequence[int] = (),
        flops: Sequence[float] = (),
        similar: Sequence[str] = (),
    ) -> None:
        self._weights = np.asarray(weights, "float64")
        self._objective = objective
        self._required_s = np.asarray(required_s, "float64")
        self._reference_s = np.asarray(reference_s, "float64")
        networks, count = self._weights.shape
        self._versions_of = np.asarray(alternatives if len(alternatives) else range(networks))
        self._flops = np.asarray(flops if len(flops) else np.ones(count), "float64")
        names = similar if len(similar) else [str(i) for i in range(count)]
        self._similar = [
            [j for j in range(count) if j != i and names[j] == names[i]] for i in range(count)
        ]
        self._history: list[list[float]] = [[] for _ in range(count)]

    def observe(self, task: int, best_s: float | None) -> None:
        """Note a batch of a task and its best latency after it; ``None`` if nothing ran yet."""
        self._history[task].append(np.inf if best_s is None else best_s)

    def latencies(self) -> Floats:
        """Return the best latency of each task, infinite where nothing ran yet."""
        return np.array([past[-1] if past else np.inf for past in self._history])

    def objective(self) -> float:
        """Return what is to be minimised; infinite while a task has no latency."""
        best_s = self.latencies()
        if np.isinf(best_s[self._weights.any(0)]).any():
            return float("inf")
        networks_s = self._weights @ np.where(np.isinf(best_s), 0, best_s)
        fastest = fastest_versions(networks_s, self._versions_of)
        networks_s = networks_s[fastest]
        if self._objective == "requirement":
            return float(np.maximum(networks_s, self._required_s[fastest]).sum())
        if self._objective == "speedup":
            return float(np.exp(np.log(networks_s / self._reference_s[fastest]).mean()))
        return float(networks_s.sum())

    def choose(self, open_tasks: Sequence[int]) -> Choice | None:
        """Return the task of the next batch, ``None`` if there is none.

        Parameters
        ----------
        open_tasks
            Indices of the tasks that have more programs to measure. Tasks without a latency
            come first, in this order.
        """
        for task in open_tasks:
            past = self._history[task]
            if not past or (np.isinf(past[-1]) and len(past) < _ATTEMPTS):
                return Choice(task, float("inf"))
        if not open_tasks:
            return None
        gains = self._slopes() * np.array(
            [self._expected_drop(task) for task in range(len(self._history))]
        )
        best = max(open_tasks, key=lambda task: gains[task])
        total = self.objective()
        return Choice(best, float(gains[best] / total) if np.isfinite(total) else float("inf"))

    def forecast(self, open_tasks: Sequence[int], batches: int) -> float | None:
        """Return the share by which so many further batches are expected to lower the objective.

        Each is taken to bring what is expected of it, but no more than what makes a latency fall
        in proportion to 1/trials: a fast fall goes on for a batch or two, not for many. ``None``
        while the objective is infinite.
        """
        before = self.objective()
        if not np.isfinite(before) or before <= 0:
            return None
        future = deepcopy(self)
        for _ in range(batches):
            choice = future.choose(open_tasks)
            if choice is None or not choice.promises(0):
                break
            past = future._history[choice.task]
            drop_s = min(future._expected_drop(choice.task), past[-1] / (len(past) + 1))
            future.observe(choice.task, past[-1] - drop_s)
        return float(1 - future.objective() / before)

    def _slopes(self) -> Floats:
        """How much the objective grows with each task's latency."""
        best_s = np.where(np.isinf(self.latencies()), 1.0, self.latencies())
        networks_s = self._weights @ best_s
        shares = self._shares(networks_s)
        if self._objective == "requirement":
            return np.asarray((shares * (networks_s > self._required_s)) @ self._weights)
        if self._objective == "speedup":
            total = np.exp(shares @ np.log(networks_s / self._reference_s) / shares.sum())
            return np.asarray(total / shares.sum() * (shares / networks_s) @ self._weights)
        slopes = shares @ self._weights
        if self._objective == "early-stop":
            stale = [_is_stale(past) for past in self._history]
            slopes = np.where(stale, 0.0, slopes)
        return np.asarray(slopes)

    def _shares(self, networks_s: Floats) -> Floats:
        """How much each network counts; its alternatives share 1, most of it the fastest's."""
        fastest_s = networks_s[fastest_versions(networks_s, self._versions_of)]
        _, places = np.unique(self._versions_of, return_inverse=True)
        slower = networks_s / np.maximum(fastest_s, 1e-300)[places] - 1
        near = np.exp(-slower / _INDIFFERENCE)
        return np.asarray(near / np.bincount(places, near)[places])

    def _expected_drop(self, task: int) -> float:
        """Seconds by which another batch is expected to lower a task's latency."""
        past = self._history[task]
        if not past:
            return 0.0
        best = past[-1]
        if np.isinf(best):
            return 0.0
        steps = min(_BACKWARD, len(past) - 1)
        before = past[-1 - steps]
        behind = max(before - best, 0.0) / steps if steps and np.isfinite(before) else 0.0
        hoped = best / len(past)
        speeds = [
            self._flops[other] / self._history[other][-1]
            for other in self._similar[task]
            if self._history[other] and np.isfinite(self._history[other][-1])
        ]
        if speeds and max(speeds) > 0:
            behind_others = best - _BETA * self._flops[task] / max(speeds)
            hoped = max(hoped, behind_others / max(1, _batches_without_gain(past) - _BACKWARD))
        return float(_ALPHA * behind + (1 - _ALPHA) * hoped)


def fastest_versions(networks_s: Floats, versions_of: Integers) -> Integers:
    """Return the index of the fastest of the networks with the same number, for each number."""
    order = np.lexsort((networks_s, versions_of))
    _, first = np.unique(versions_of[order], return_index=True)
    return np.asarray(order[first])


def _batches_without_gain(past: Sequence[float]) -> int:
    return int((np.asarray(past) <= (1 + _NEGLIGIBLE) * past[-1]).sum()) - 1


def _is_stale(past: Sequence[float]) -> bool:
    return len(past) > _STALE_BATCHES and past[-1] >= past[-1 - _STALE_BATCHES]
