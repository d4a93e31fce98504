"""Networks prepared as they are, and with one part of that switched off, timed in turns.

    python -m tools.benchmarks.preparation --runs runs/preparation
    python -m tools.benchmarks.preparation --runs runs/preparation --cases vit_tiny:attention \\
        --seeds 0 1 2 --per-task 16

Either side is tuned with the shipped bundle, the same seed and as many trials a task, in all
layouts; a network is tuned once for all parts that are switched off in it. Tuned networks lie in
``--runs``, and after each case ``tools/results/preparation.json`` is written. What is there of this
machine is not measured again.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from costlib.frozen import Frozen
from costlib.hardware import Hardware, find_hardware
from costlib.tuning.config import TuneConfig
from costlib.tuning.networks import NetworkSet
from costlib.tuning.session import RUN
from costlib.tuning.trials import TRIALS
from costlib.tuning.tune import tune
from costlib.tvm_compat import networks as compiling
from costlib.workloads import attention, in_layouts, inference
from tools.benchmarks.in_turns import Timed, timed
from tools.benchmarks.outside import load_any
from tools.evidence.files import read_result, write_result

_RESULT = "preparation"
_PER_TASK = 16


def _without(place: Any, name: str, instead: Any) -> AbstractContextManager[Any]:
    return mock.patch.object(place, name, instead)


PARTS: Mapping[str, Callable[[], AbstractContextManager[Any]]] = {
    "attention": lambda: _without(inference, "with_attention", lambda mod, _: mod),
    "masks": lambda: _without(attention, "steps_ahead", lambda *_: None),
    "caches": lambda: _without(attention, "_FEWEST_VECTORS", 1 << 30),
    "vectors": lambda: _without(inference, "with_filled_vectors", lambda mod, _: mod),
    "concatenations": lambda: _without(compiling, "concatenations", lambda _: {}),
    "layouts": lambda: _without(in_layouts, "other_layouts", lambda *_: []),
    "winograd": lambda: _without(in_layouts, "_by_winograd", lambda *_: []),
}
"""What may be switched off."""

CASES = (
    ("vit_tiny", "attention"),
    ("bert_mini", "attention"),
    ("whisper_tiny_encoder", "attention"),
    ("vit_tiny+bf16", "attention"),
    ("gpt2_mini", "masks"),
    ("llama_mini_step@p1024", "caches"),
    ("whisper_tiny_encoder", "layouts"),
    ("squeezenet", "vectors"),
    ("squeezenet", "concatenations"),
    ("resnet_18", "winograd"),
    ("r3d", "winograd"),
)


class Preparation(Frozen):
    """A network with and without a part of its preparation."""

    network: str
    part: str
    seed: int
    per_task: int
    hardware: str
    on: Timed
    off: Timed

    @property
    def case(self) -> tuple[str, str, int, int, str]:
        """What tells it from others."""
        return self.network, self.part, self.seed, self.per_task, self.hardware

    @property
    def gain(self) -> float:
        """How many times as fast the network is with that part."""
        return self.off.network_s / self.on.network_s


def main() -> None:
    """Measure the cases that are missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="+", type=_case, default=CASES, metavar="NETWORK:PART")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--per-task", type=int, default=_PER_TASK, help="trials")
    parser.add_argument("--runs", type=Path, required=True, help="where tuned networks are kept")
    given = parser.parse_args()
    hardware = find_hardware("cpu", num_cores=2)
    rows = read_rows()
    for (network, part), seed in itertools.product(given.cases, given.seeds):
        case = network, part, seed, given.per_task, hardware.hardware_id
        if case not in {row.case for row in rows}:
            rows.append(_measured(network, part, seed, given.per_task, hardware, given.runs))
            write_result(_RESULT, summarise(rows))
            print(*case, f"{rows[-1].gain:.2f}", flush=True)


def _case(text: str) -> tuple[str, str]:
    network, _, part = text.partition(":")
    if part not in PARTS:
        raise argparse.ArgumentTypeError(f"{text}: name one of {', '.join(PARTS)} after a colon")
    return network, part


def _measured(
    network: str, part: str, seed: int, per_task: int, hardware: Hardware, runs: Path
) -> Preparation:
    libraries = {"on": _tuned(network, seed, per_task, hardware, runs / f"{network}-s{seed}")}
    with PARTS[part]():
        folder = runs / f"{network}-s{seed}-without-{part}"
        libraries["off"] = _tuned(network, seed, per_task, hardware, folder)
    return Preparation(
        network=network,
        part=part,
        seed=seed,
        per_task=per_task,
        hardware=hardware.hardware_id,
        **timed(libraries, hardware),
    )


def _tuned(name: str, seed: int, per_task: int, hardware: Hardware, folder: Path) -> Path:
    """Tune a network, or go on with that, and return where it lies."""
    network = load_any(name)
    result = tune(
        network,
        out=folder,
        trials=per_task * len(NetworkSet.load([network], hardware).tasks),
        hardware=hardware,
        seed=seed,
        resume=any((folder / name).exists() for name in (RUN, TRIALS)),
        config=TuneConfig(layouts="all"),
    )
    return Path(result.networks[0].library)


def read_rows() -> list[Preparation]:
    """Return what was measured."""
    return [Preparation.model_validate(row) for row in read_result(_RESULT).get("cases", [])]


def summarise(rows: Sequence[Preparation]) -> dict[str, Any]:
    """Return the cases, and what each part brings to each network, in geometric mean of seeds."""
    gains: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        gains.setdefault(row.part, {}).setdefault(row.network, []).append(row.gain)
    means = {
        part: {name: float(np.exp(np.mean(np.log(found)))) for name, found in by_network.items()}
        for part, by_network in gains.items()
    }
    return {"cases": [row.model_dump(mode="json") for row in rows], "gains": means}


if __name__ == "__main__":
    main()
