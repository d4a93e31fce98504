"""What a reader of a run wants to know first, a sentence each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from costlib.report.found_run import LEFT, FoundRun, time_before_s, time_now_s
from costlib.report.page import Link, Sentence
from costlib.report.profile import profile_sentences
from costlib.report.units import Unit, counted, plain, share
from costlib.tuning.result import FURTHER_TRIALS, NetworkResult, TaskResult, UntimedNetwork

_NETWORKS = 3
"""Networks with a sentence of their own."""

_SIMULATED = (
    "Nothing here was measured: the device is simulated, and every latency on this page is made up."
)

_HEAVY = 3
"""Tasks that are named where the time is."""


def verdict(run: FoundRun) -> list[Sentence]:
    """Say whether a run's networks are faster, what more trials promise, and where the time is."""
    sentences: list[Sentence] = []
    if run.unfinished:
        sentences.append([f"This run has no result: {run.unfinished}."])
    if run.is_simulated:
        sentences.append([_SIMULATED])
    sentences += [[_untimed_sentence(one)] for one in run.result.untimed]
    networks = run.result.networks
    if len(networks) <= _NETWORKS:
        sentences += [[network_sentence(one, run.unit)] for one in networks]
    else:
        sentences.append([_networks_sentence(networks)])
    if run.unfinished and run.result.curve:
        sentences.append([_so_far(run)])
    if (gain := run.result.expected_gain) is not None and networks:
        sentences.append([_gain_sentence(gain)])
    if 0 < len(run.profiles) <= _NETWORKS:
        sentences += profile_sentences(run)
    else:
        sentences += _where(run)
    sentences += _left(run.result.tasks)
    if not run.result.curve:
        sentences.append(["No program has been measured yet."])
    return sentences


def _untimed_sentence(one: UntimedNetwork) -> str:
    """Say whether a network for a simulated device computes what its original does."""
    if one.not_compared is not None:
        return f"{one.network} was compiled, but not compared: {one.not_compared}."
    return (
        f"{one.network} was compiled, and differs from {one.original} by {one.max_abs_error:.1e} "
        f"at most, where the largest output is {one.max_abs_output:.1e}."
    )


def network_sentence(one: NetworkResult, unit: Unit) -> str:
    """Say whether a network is faster than PyTorch, by how much, and how sure that is."""
    tuned_s, torch_s = one.latency_after_s, one.pytorch_latency_s
    untuned = f"{plain(one.latency_before_s / tuned_s)} times as fast as untuned"
    if torch_s is None:
        text = f"{one.network} takes {unit.text(tuned_s)}, {untuned}; there is no PyTorch to beat."
        doubt = {"tuned", "untuned"} & set(one.doubtful)
        return text + (_DOUBT if doubt else "")
    ratio = torch_s / tuned_s
    verb = "beats PyTorch" if ratio > 1 else "does not beat PyTorch"
    text = (
        f"{one.network} {verb}: it takes {unit.text(tuned_s)}, PyTorch {unit.text(torch_s)}; "
        f"it is {plain(ratio)} times as fast as PyTorch and {untuned}."
    )
    return text + _how_sure(one)


_DOUBT = " The machine was too busy for the turns to agree, so do not rely on it."


def _how_sure(one: NetworkResult) -> str:
    if {"tuned", "PyTorch"} & set(one.doubtful):
        return _DOUBT
    if not {"tuned", "PyTorch"} <= one.spread_s.keys():
        return " The turns in which both were timed agree within 5 %."
    fastest, slowest = zip(one.spread_s["PyTorch"], one.spread_s["tuned"][::-1], strict=True)
    low, high = fastest[0] / fastest[1], slowest[0] / slowest[1]
    text = f" Turn against turn it was {plain(low)} to {plain(high)} times as fast"
    return f"{text}: too close to tell." if low <= 1 <= high else f"{text}."


def _networks_sentence(networks: Sequence[NetworkResult]) -> str:
    pairs = [(one.pytorch_latency_s, one) for one in networks if one.pytorch_latency_s is not None]
    if not pairs:
        return f"{len(networks)} networks were tuned; there is no PyTorch to compare them with."
    ratios = sorted((torch_s / one.latency_after_s, one.network) for torch_s, one in pairs)
    faster = sum(ratio > 1 for ratio, _ in ratios)
    mean = float(np.exp(np.mean([np.log(ratio) for ratio, _ in ratios])))
    (least, worst), (most, best) = ratios[0], ratios[-1]
    text = (
        f"{faster} of {len(ratios)} networks beat PyTorch. They are {plain(mean)} times as fast as "
        f"it in the geometric mean, from {plain(least)} ({worst}) to {plain(most)} ({best})."
    )
    doubtful = sum(bool({"tuned", "PyTorch"} & set(one.doubtful)) for _, one in pairs)
    return text + (f" The turns of {doubtful} of them do not agree." if doubtful else "")


def _so_far(run: FoundRun) -> str:
    before_s = sum(map(time_before_s, run.result.tasks))
    now_s = sum(map(time_now_s, run.result.tasks))
    text = f"After {counted(run.result.trials, 'trial')} the tasks take {run.unit.text(now_s)}"
    return f"{text}, {plain(before_s / now_s)} times as fast as untuned." if now_s else f"{text}."


def _gain_sentence(gain: float) -> str:
    if gain < 0.001:
        return f"Another {FURTHER_TRIALS} trials: the scheduler expects nothing of them."
    return (
        f"Another {FURTHER_TRIALS} trials: the scheduler, which is an optimist, expects up to "
        f"{share(gain)} less time of them."
    )


def _where(run: FoundRun) -> list[Sentence]:
    """Say which tasks take most of the time now."""
    total_s = sum(map(time_now_s, run.result.tasks))
    if len(run.result.tasks) < 2 or not total_s:
        return []
    heavy = sorted(run.result.tasks, key=time_now_s, reverse=True)[:_HEAVY]
    sentence: list[str | Link] = ["Of the tasks' time now, "]
    for place, task in enumerate(heavy):
        sentence.append("" if not place else " and " if place == len(heavy) - 1 else ", ")
        sentence.append(f"{share(time_now_s(task) / total_s)} is in ")
        sentence.append(run.link(task.workload_id))
    return [[*sentence, "."]]


def _left(tasks: Sequence[TaskResult]) -> list[Sentence]:
    left = [task for task in tasks if task.left]
    if not left:
        return []
    total_s = sum(map(time_before_s, tasks))
    part = f", {share(sum(map(time_before_s, left)) / total_s)} of the untuned time" * bool(total_s)
    reasons = Counter(str(task.left) for task in left).most_common()
    why = "; ".join(f"{count} because {reason}" for reason, count in reasons)
    if len(reasons) == 1:
        why = reasons[0][0]
    what = (
        "task stayed as TVM compiles it" if len(left) == 1 else "tasks stayed as TVM compiles them"
    )
    return [[Link(f"{len(left):,} {what}", f"#{LEFT}"), f"{part}: {why}."]]
