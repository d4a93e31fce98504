"""Steps with whole networks: tuned, compared with their originals, and timed beside PyTorch."""

from __future__ import annotations

from typing import Any

from costlib.tuning.config import TuneConfig
from costlib.tuning.result import TuneResult
from costlib.tuning.session import RUN
from costlib.tuning.tune import tune
from costlib.workloads import extract_tasks
from tools.maintenance.gpu.bench import Bench, Step, microseconds

SMALL = ("resnet_18", "bert_small")
"""Networks that are quick; neither is held out."""

HELD_OUT = ("resnet_50", "bert_base")
_PER_TASK = 64
_SMALL_TRIALS = 34
_SMALL_MINUTES = 1.5
_MINUTES = 4.0
"""Of one call; called again, a network that was stopped goes on."""

COMPILED = "torch.compile"


def small(name: str) -> Step:
    """Return the step that tunes a small network a little."""
    return lambda bench: _network(bench, name, _SMALL_TRIALS, _SMALL_MINUTES)


def held_out(name: str) -> Step:
    """Return the step that tunes a network with 64 trials a task, as far as the minutes go."""

    def step(bench: Bench) -> dict[str, Any]:
        trials = _PER_TASK * len(extract_tasks(name, bench.hardware))
        return _network(bench, name, trials, _MINUTES)

    return step


def is_complete(found: dict[str, Any]) -> bool:
    """Whether all trials of a network were spent."""
    return bool(found["trials"] >= found["wanted"])


def _network(bench: Bench, name: str, trials: int, minutes: float) -> dict[str, Any]:
    folder, trials = bench.out / name, bench.programs(trials)
    against = () if bench.is_rehearsal else (COMPILED,)
    result = tune(
        name,
        out=folder,
        trials=trials,
        minutes=None if bench.is_rehearsal else minutes,
        hardware=bench.hardware,
        resume=(folder / RUN).exists(),
        config=TuneConfig(measure=bench.config(), against=against),
    )
    left = sum(task.left is not None for task in result.tasks)
    outline = {"trials": result.trials, "wanted": trials, "tasks": len(result.tasks), "left": left}
    return outline | (_rehearsed(result) if bench.is_rehearsal else _measured(result))


def _rehearsed(result: TuneResult) -> dict[str, Any]:
    (network,) = result.untimed
    return {"not_compared": network.not_compared}


def _measured(result: TuneResult) -> dict[str, Any]:
    (network,) = result.networks
    (compiled,) = network.engines
    tuned_s, eager_s = network.latency_after_s, network.pytorch_latency_s
    return {
        "untuned_us": microseconds(network.latency_before_s),
        "tuned_us": microseconds(tuned_s),
        "pytorch_us": microseconds(eager_s),
        "torch_compile_us": microseconds(compiled.latency_s),
        "torch_compile_problem": compiled.problem,
        "of_pytorch": None if eager_s is None else round(eager_s / tuned_s, 3),
        "of_torch_compile": (
            None if compiled.latency_s is None else round(compiled.latency_s / tuned_s, 3)
        ),
        "doubtful": network.doubtful,
        "gpu": [state.model_dump() for state in network.gpu],
        "max_abs_error": network.max_abs_error,
        "max_abs_output": network.max_abs_output,
    }
