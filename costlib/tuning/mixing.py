"""Which convolutions are by Winograd's algorithm: those that it was measured to be faster for."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

from costlib.workloads.task import Task
from costlib.workloads.winograd import WINOGRAD, Kind
from costlib.workloads.winograd_kernels import OUTPUT

Shapes = Sequence[tuple[int, ...]]


def slower_by_winograd(
    kinds: Collection[Kind], tasks: Sequence[Task], latency_s: Sequence[float]
) -> frozenset[Kind]:
    """Return the kinds of convolutions that take less time as convolutions.

    Parameters
    ----------
    kinds
        Those that a network has.
    tasks, latency_s
        Tasks of the network with and without Winograd's algorithm, and seconds of a call of each.
    """
    timed = [
        (task.name, [shape for _, shape in task.arguments], seconds)
        for task, seconds in zip(tasks, latency_s, strict=True)
    ]

    def mean(matches: Callable[[str, Shapes], bool]) -> float:
        found = [seconds for name, shapes, seconds in timed if matches(name, shapes)]
        return math.fsum(found) / len(found) if found else math.nan

    def is_slower(kind: Kind) -> bool:
        image, weight, output, transformed, multiplied, products = kind
        direct = mean(
            lambda name, shapes: (
                ("conv2d" in name or "conv3d" in name)
                and [*shapes[:2], shapes[-1]] == [image, weight, output]
            )
        )
        steps = (
            mean(lambda name, shapes: WINOGRAD in name and shapes == [image, transformed]),
            mean(lambda _, shapes: shapes[:2] == [transformed, multiplied]),
            mean(
                lambda name, shapes: (
                    OUTPUT in name and [shapes[0], shapes[-1]] == [products, output]
                )
            ),
        )
        return direct < math.fsum(steps)

    return frozenset(kind for kind in kinds if is_slower(kind))
