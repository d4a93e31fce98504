"""Tasks that no dataset has: operators as networks have them, with extents drawn at random.

A dataset knows the shapes of a few dozen networks. What is learnt without measuring can be learnt
on others, too, so that an extent of 40 or 96 channels is nothing new.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from costlib.data.splits import WorkloadKey, overlapping
from costlib.errors import InputError, TargetError
from costlib.hardware import Hardware
from costlib.workloads import extract_tasks
from costlib.workloads.layout import CHANNELS_LAST
from costlib.workloads.task import Task

FLOPS = (1e5, 2e9)
"""Smaller tasks take no time, larger ones are in no network for a CPU."""

_ODD = (1, 3, 5, 7, 9, 11, 13, 15, 17, 25, 35, 49)
_EXTENTS = np.unique([odd << shift for odd in _ODD for shift in range(13)])
_FORMS = (
    "conv2d {n} {c} {x} {x} {o} 1 bias={b} relu={r}",
    "conv2d {n} {c} {x} {x} {o} 1 bias={b} relu={r}",
    "conv2d {n} {c} {x} {x} {o} 1 stride=2",
    "conv2d {n} {c} {x} {x} {o} 3 pad=1 bias={b} relu={r}",
    "conv2d {n} {c} {x} {x} {o} 3 pad=1 bias={b} relu={r}",
    "conv2d {n} {c} {x} {x} {o} 3 stride=2 pad=1",
    "conv2d {n} {c} {x} {x} {o} 5 pad=2",
    "conv2d 1 3 {p} {p} {o} 7 stride=2 pad=3 bias=1 relu=1",
    "depthwise_conv2d {n} {c} {x} {x} 3 pad=1 relu={r}",
    "depthwise_conv2d {n} {c} {x} {x} 3 stride=2 pad=1",
    "depthwise_conv2d {n} {c} {x} {x} 5 pad=2",
    "grouped_conv2d {n} {gc} {x} {x} {gc} 3 {g} pad=1 relu={r}",
    "conv2d_transpose {n} {c} {s} {s} {o} 4 stride=2 pad=1",
    "conv1d {n} {c} {m} {o} 3 pad=1",
    "conv3d 1 {c} {s} {x} {x} {o} 3 pad=1",
    "dense {m} {k} {c} bias={b} relu={r}",
    "dense {m} {k} {c} bias={b} relu={r}",
    "dense {m} {c} {k} bias={b} relu={r}",
    "matmul {m} {k} {c}",
    "batch_matmul {h} {m} {s} {m}",
    "batch_matmul {h} {m} {m} {s}",
    "max_pool2d {n} {c} {x} {x} 3 stride=2",
    "avg_pool2d {n} {k} {w} {w} {w}",
    "softmax {k} {m}",
    "layer_norm {m} {k}",
    "mean {m} {k}",
)
"""Operators, the more frequent ones several times."""

_CHANNELS_LAST_SHARE = 0.5
"""Of convolutions, as ``tune`` makes them of a network; other scripts leave them as they are."""

_RANGES = {
    "n": (1, 4),
    "c": (1, 96),
    "o": (1, 96),
    "x": (7, 112),
    "p": (96, 320),
    "s": (4, 128),
    "m": (16, 1024),
    "k": (8, 384),
    "h": (2, 24),
    "w": (3, 14),
}
_CHANNELS = "cok"
"""Those that are multiples of 8, as in networks."""


def invented_tasks(
    count: int, hardware: Hardware, banned: Collection[WorkloadKey], seed: int
) -> Iterator[Task]:
    """Invent tasks.

    Parameters
    ----------
    count
        How many; none if this TVM cannot compile for the hardware.
    hardware
        What they are to be compiled for.
    banned
        Workloads that they must not equal, nor nearly equal.
    seed
        The same seed gives the same tasks.
    """
    rng = np.random.default_rng(seed)
    done: set[str] = set()
    while len(done) < count:
        try:
            task, *_ = extract_tasks(_operator(rng), hardware)
        except TargetError:
            return
        except InputError:  # Its extents do not go together.
            continue
        shapes = [shape for _, shape in task.arguments]
        key = WorkloadKey.of(task.workload_id, task.name, shapes)
        fits = FLOPS[0] <= task.flops <= FLOPS[1] and not overlapping([key], banned)
        if fits and task.workload_id not in done:
            done.add(task.workload_id)
            yield task


def _operator(rng: np.random.Generator) -> str:
    """Draw the spec of an operator."""
    extents = {name: extent(rng, *limits) for name, limits in _RANGES.items()}
    extents |= {name: 8 * extents[name] for name in _CHANNELS}
    extents["n"] = 1 if rng.random() < 0.7 else extents["n"]
    extents["g"] = int(rng.choice([2, 4, 8, 16, 32]))
    extents["gc"] = extents["g"] * extent(rng, 2, 32)
    switches = {"b": int(rng.random() < 0.8), "r": int(rng.random() < 0.6)}
    spec = str(rng.choice(_FORMS)).format(**extents, **switches)
    is_last = "conv" in spec and rng.random() < _CHANNELS_LAST_SHARE
    return f"{spec}+{CHANNELS_LAST}" if is_last else spec


def extent(rng: np.random.Generator, low: int, high: int) -> int:
    """Draw an extent that is the product of powers of two and a small odd number."""
    drawn = np.exp(rng.uniform(np.log(low), np.log(high)))
    return int(_EXTENTS[np.abs(_EXTENTS / drawn - 1).argmin()])
