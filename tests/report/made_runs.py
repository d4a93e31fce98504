"""Runs' results that nobody measured: cheap, and as large as a test wants them."""

from __future__ import annotations

from pathlib import Path

from costlib.tuning.profile import PROFILE, KernelProfile, NetworkProfile, RunProfile
from costlib.tuning.result import CurvePoint, NetworkResult, TaskResult, TuneResult
from costlib.workloads.title import task_title


def made_task(number: int, networks: tuple[str, ...], trials: int, end_s: float) -> TaskResult:
    workload_id = f"{number:06x}{'0' * 10}"
    arguments = [
        ("float32", (1, 64, 56, 56)),
        ("float32", (64, 1, 3, 3)),
        ("float32", (1, 64, 56, 56)),
    ]
    return TaskResult(
        name="conv2d_add_relu",
        workload_id=workload_id,
        calls=dict.fromkeys(networks, 1 + number % 3),
        flops=1e7,
        trials=trials,
        latency_before_s=end_s * 40,
        latency_after_s=end_s if trials else None,
        left=None if trials else "it takes too little of the time to be worth a trial",
        title=task_title("conv2d_add_relu", arguments, workload_id),
    )


def made_result(
    networks: tuple[str, ...] = ("net",),
    tasks: int = 3,
    trials: int = 12,
    seed: int = 0,
    bundle: str = "none",
    faster: float = 1.0,
) -> TuneResult:
    """A result in which each trial of a task takes less than the one before."""
    made = [
        made_task(n, networks, trials // tasks, 1e-4 * (1 + n % 7) / faster) for n in range(tasks)
    ]
    curve = []
    for trial in range(trials if trials >= tasks else 0):
        end_s = made[trial % tasks].latency_after_s
        assert end_s is not None
        latency_s = end_s * (1 + (trials - trial) / trials)
        curve.append(
            CurvePoint(
                elapsed_s=1.5 * (trial + 1 + seed),
                task=trial % tasks,
                latency_s=latency_s,
                best_s=latency_s,
            )
        )
    return TuneResult(
        networks=tuple(
            NetworkResult(
                network=name,
                library=f"{name}.so",
                latency_before_s=0.04 / faster,
                latency_after_s=1e-3 / faster,
                pytorch_latency_s=1.5e-3 * (1 + number % 2),
                spread_s={"tuned": (0.9e-3, 1.1e-3), "PyTorch": (1.4e-3, 1.7e-3)},
                max_abs_error=1e-6,
                max_abs_output=1.0,
            )
            for number, name in enumerate(networks)
        ),
        bundle=bundle,
        hardware_id="some-cpu",
        seed=seed,
        trials=len(curve),
        elapsed_s=1.5 * trials,
        search_s=1.0,
        measure_s=2.0,
        stopped="all trials were spent",
        tasks=tuple(made),
        curve=tuple(curve),
        expected_gain=0.12,
    )


def made_profile(result: TuneResult, dispatch: float = 0.1) -> RunProfile:
    """A profile in which kernels take as much longer than tuned as the network takes longer."""
    profiles = []
    for network in result.networks:
        calls = [
            task for task in result.tasks for _ in range(task.calls[network.network]) if task.trials
        ]
        tasks_s = sum(task.latency_s or 0.0 for task in calls)
        longer = (1 - dispatch) * network.latency_after_s / tasks_s
        kernels = [
            KernelProfile(
                name=task.title,
                workload_id=task.workload_id,
                flops=task.flops,
                nbytes=10**6,
                latency_s=longer * (task.latency_s or 0.0),
                tuned_s=task.latency_s,
            )
            for task in calls
        ]
        profiles.append(
            NetworkProfile(
                network=network.network,
                network_s=network.latency_after_s,
                tasks_s=tasks_s,
                dispatch_s=dispatch * network.latency_after_s,
                unexplained_s=(longer - 1) * tasks_s,
                tracing=0.01,
                memory_bytes_per_s=2e10,
                kernels=tuple(kernels),
            )
        )
    return RunProfile(networks=tuple(profiles))


def write_run(folder: Path, result: TuneResult, profile: RunProfile | None = None) -> Path:
    folder.mkdir(parents=True)
    (folder / "result.json").write_text(result.model_dump_json())
    if profile is not None:
        (folder / PROFILE).write_text(profile.model_dump_json())
    return folder
