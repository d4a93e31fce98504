"""What looks at the best programs of the held-out tasks say of labels, and of what ranks by them.

Of each task the best programs by their labels were looked at several times; the median of a
program's looks counts as its true latency. Three orders of those programs are judged:

- the ceiling: by the truth, judged by the labels. It is what somebody would get who knows the true
  latency of these programs, and that no other one is better. A label that is too low makes a
  program one of the best, so the ceiling is of an order that no model can know;
- the left-out look: by the median of all looks but one, judged by that one, on the average over
  the looks. These are labels that have chosen nothing, each of one look;
- the labels: by the labels, judged by the truth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from costlib.arrays import Floats
from costlib.training.metrics import drawn_ratios, interval_of, top_k

KS = (1, 5)

Calls = Mapping[str, Mapping[str, int]]
"""How often each network calls its workloads."""


@dataclass(frozen=True)
class LookedAt:
    """The best programs of a task.

    Attributes
    ----------
    title
        What people call the task.
    labels
        float64 `n`: their latencies in the dataset, in seconds.
    looks
        float64 `l x n`: those of each look.
    """

    workload_id: str
    title: str
    labels: Floats
    looks: Floats

    @property
    def truth(self) -> Floats:
        """The median of the looks; float64 `n`."""
        return np.asarray(np.median(self.looks, axis=0))

    @property
    def noise(self) -> float:
        """Standard deviation of the logarithm of a look, over all of the task's programs."""
        return float(np.sqrt(np.log(self.looks).var(axis=0, ddof=1).mean()))


def summarise_ceiling(tasks: Sequence[LookedAt], calls: Calls) -> dict[str, Any]:
    """Return what was found.

    Parameters
    ----------
    tasks
        Of two looks at least.
    calls
        Workloads that were not looked at are passed over, and networks without any.
    """
    noise = np.array([task.noise for task in tasks])
    off = np.concatenate([np.log(task.truth / task.labels) for task in tasks])
    off_of_best = [np.log(task.truth / task.labels)[task.labels.argmin()] for task in tasks]
    truths, labels = [task.truth for task in tasks], [task.labels for task in tasks]
    return {
        "tasks": len(tasks),
        "programs": sum(len(task.labels) for task in tasks),
        "noise": {
            "median": _rounded(np.median(noise)),
            "p90": _rounded(np.quantile(noise, 0.9)),
            "largest": _rounded(noise.max()),
        },
        "truth_of_label": {
            "all": _rounded(np.exp(np.median(off))),
            "best": _rounded(np.exp(np.median(off_of_best))),
        },
        "ceiling": _judged(tasks, calls, truths, labels),
        "left_out_look": _mean(
            [
                _judged(
                    tasks,
                    calls,
                    [np.median(np.delete(task.looks, one, axis=0), axis=0) for task in tasks],
                    [task.looks[one] for task in tasks],
                )
                for one in range(len(tasks[0].looks))
            ]
        ),
        "labels": _judged(tasks, calls, labels, truths),
        "by_task": [
            {
                "workload_id": task.workload_id,
                "task": task.title,
                "programs": len(task.labels),
                "noise": _rounded(task.noise),
                "top1": _rounded(task.labels.min() / top_k(-task.truth, task.labels, 1)),
            }
            for task in sorted(tasks, key=lambda task: -task.noise)
        ],
    }


def _judged(
    tasks: Sequence[LookedAt], calls: Calls, order: Sequence[Floats], judge: Sequence[Floats]
) -> dict[str, Any]:
    """Judge an order as :mod:`costlib.training.protocol` does: top-k, the mean of the networks."""
    best = np.array([latency_s.min() for latency_s in judge])
    chosen = {
        k: np.array([top_k(-by, latency_s, k) for by, latency_s in zip(order, judge, strict=True)])
        for k in KS
    }
    places = {task.workload_id: place for place, task in enumerate(tasks)}
    networks: dict[str, dict[str, float]] = {}
    draws: dict[int, list[Floats]] = {k: [] for k in KS}
    for network, counts in calls.items():
        known = [workload_id for workload_id in counts if workload_id in places]
        if not known:
            continue
        rows = np.array([places[workload_id] for workload_id in known])
        weights = np.array([counts[workload_id] for workload_id in known], "float64")
        networks[network] = {
            f"top{k}": float(weights @ best[rows] / (weights @ each[rows]))
            for k, each in chosen.items()
        }
        for k, each in chosen.items():
            draws[k].append(drawn_ratios(best[rows], each[rows], weights, len(networks) - 1))
    found: dict[str, Any] = {}
    for k in KS:
        found[f"top{k}"] = _rounded(np.mean([one[f"top{k}"] for one in networks.values()]))
        low, high = interval_of(np.mean(draws[k], axis=0))
        found[f"top{k}_interval"] = [_rounded(low), _rounded(high)]
    rounded = {
        name: {figure: _rounded(value) for figure, value in one.items()}
        for name, one in networks.items()
    }
    return found | {"networks": rounded}


def _mean(found: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    return {f"top{k}": _rounded(np.mean([one[f"top{k}"] for one in found])) for k in KS}


def _rounded(value: Any) -> float:
    return round(float(value), 4)
