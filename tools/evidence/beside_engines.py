"""Tuned networks beside other engines: what is measured of each, and all of them together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ConfigDict

from costlib.tuning.profile import RunProfile
from costlib.tuning.result import TuneResult
from tools.evidence.means import geometric_mean

OURS = "costlib"
ENGINES = {
    "pytorch": "PyTorch",
    "compiled": "torch.compile",
    "compiled_max_autotune": "torch.compile, max-autotune",
    "onnxruntime": "ONNX Runtime",
    "openvino": "OpenVINO",
}
"""What they are called in a result file, and by themselves."""

AGAINST = ("torch.compile", "torch.compile-max-autotune", "onnxruntime", "openvino")
"""What :class:`costlib.TuneConfig` calls all but PyTorch, which is always there."""


Case = tuple[str, int, int, str]
"""A network, its batch, the threads, and the id of the hardware."""

_NOTED = {"network_s", "tasks_s", "dispatch_s"}
"""Of a network's profile."""


class BesideEngines(BaseModel):
    """A network of one batch, tuned for so many threads, and what it takes elsewhere.

    Attributes
    ----------
    name, batch, threads
        The network; all engines have so many threads.
    hardware
        Id of what it was measured on.
    trials, tune_s
        Programs measured, and seconds that searching and measuring them took.
    costlib_s, pytorch_s, compiled_s, compiled_max_autotune_s, onnxruntime_s, openvino_s
        Seconds of a call; ``None`` where it does not run.
    agreement
        Largest difference from PyTorch's output, by engine.
    largest_output
        The largest element of that output.
    network_s, tasks_s, dispatch_s
        Of ``costlib profile``: seconds of a call, what its kernels took together when they were
        tuned, and what passes between kernels. ``None`` where there is no profile.
    doubtful
        Those whose turns did not agree.
    problems
        Why there is no latency, by engine.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    batch: int
    threads: int
    hardware: str
    trials: int
    tune_s: float = 0.0
    costlib_s: float | None = None
    pytorch_s: float | None = None
    compiled_s: float | None = None
    compiled_max_autotune_s: float | None = None
    onnxruntime_s: float | None = None
    openvino_s: float | None = None
    agreement: dict[str, float] = {}
    largest_output: float | None = None
    network_s: float | None = None
    tasks_s: float | None = None
    dispatch_s: float | None = None
    doubtful: tuple[str, ...] = ()
    problems: dict[str, str] = {}

    @property
    def case(self) -> Case:
        """Which network, batch and threads it is, and on which machine."""
        return self.name, self.batch, self.threads, self.hardware

    def seconds(self, engine: str) -> float | None:
        """Return what a call takes in an engine."""
        found: float | None = getattr(self, f"{engine}_s")
        return found

    def ratio(self, engine: str) -> float | None:
        """Return how many times as fast as an engine the tuned network is.

        Where a compiled network is slower than PyTorch's own, that counts: nobody would compile it.
        """
        theirs = self.seconds(engine)
        if theirs and engine.startswith("compiled") and self.pytorch_s:
            theirs = min(theirs, self.pytorch_s)
        return theirs / self.costlib_s if theirs and self.costlib_s else None

    @property
    def ratio_to_best(self) -> float | None:
        """How many times as fast as the fastest engine it is."""
        found = (self.ratio(engine) for engine in ENGINES)
        return min((ratio for ratio in found if ratio is not None), default=None)

    @property
    def ratio_to_tasks(self) -> float | None:
        """How many times as long as its tasks, together, the network takes."""
        return self.network_s / self.tasks_s if self.network_s and self.tasks_s else None

    @property
    def dispatch_share(self) -> float | None:
        """The share of the network's time in which no kernel runs."""
        if self.network_s is None or self.dispatch_s is None:
            return None
        return self.dispatch_s / self.network_s

    @classmethod
    def of_run(
        cls, name: str, batch: int, threads: int, result: TuneResult, profile: RunProfile
    ) -> BesideEngines:
        """Return what a run of one network came to."""
        (network,) = result.networks
        noted = [one.model_dump(include=_NOTED) for one in profile.networks]
        keys = {title: key for key, title in ENGINES.items()} | {"tuned": OURS}
        others = {keys[found.title]: found for found in network.engines}
        errors = {key: found.max_abs_error for key, found in others.items()}
        return cls(
            name=name,
            batch=batch,
            threads=threads,
            hardware=result.hardware_id,
            trials=result.trials,
            tune_s=round(result.search_s + result.measure_s, 1),
            costlib_s=network.latency_after_s,
            pytorch_s=network.pytorch_latency_s,
            **{f"{key}_s": found.latency_s for key, found in others.items()},
            agreement={OURS: network.max_abs_error}
            | {key: error for key, error in errors.items() if error is not None},
            largest_output=network.max_abs_output,
            **(noted[0] if noted else {}),
            doubtful=tuple(keys[what] for what in network.doubtful if what in keys),
            problems={
                key: found.problem for key, found in others.items() if found.problem is not None
            },
        )


def summarise_engines(rows: Iterable[BesideEngines]) -> dict[str, Any]:
    """Return the result file: each network, and by engine the mean of their latencies by ours."""
    rows = list(rows)
    return {
        "geometric_mean": means(rows),
        "networks": [row.model_dump(mode="json") for row in rows],
    }


def means(rows: Iterable[BesideEngines]) -> dict[str, float]:
    """Return how many times as fast as each engine the networks are, in the geometric mean."""
    rows = list(rows)
    ratios = {
        engine: [ratio for row in rows if (ratio := row.ratio(engine)) is not None]
        for engine in ENGINES
    }
    return {engine: geometric_mean(found) for engine, found in ratios.items() if found}
