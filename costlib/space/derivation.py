"""How a task's design space is derived: by TVM's rules, or by those of them that can.

Some of TVM's schedule rules fail on some tasks: tiling on a product whose consumer reads a mask as
well, say; and a postprocessor may raise on, or refuse, every program. Such a task is derived
with rules that inline more, without one rule, or by the simplest of them. If nothing helps it has
no sketches, and is left as TVM compiles it.
"""

from __future__ import annotations

import functools
import json
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from costlib.errors import quoted
from costlib.space.around_instructions import (
    has_sums_in_memory,
    keep_instructions_whole,
    let_what_follows_be_vectors,
    make_instructions,
    unroll_no_more_than_helps,
)
from costlib.space.kernels import why_not_launched
from costlib.space.recomputed import start_where_computed
from costlib.space.tensorised import rules_beside
from costlib.tvm_compat import ms, tvm
from costlib.tvm_compat.api import trace_from_json, trace_to_json
from costlib.tvm_compat.quiet import stderr_silenced
from costlib.workloads.task import Task

_log = logging.getLogger(__name__)

_DRAWS = 8
"""Programs that are drawn to see whether any is valid; at least one of each sketch."""

_REMEMBERED = 1024

_DISPENSABLE = ("RewriteLayout", "DisallowDynamicLoop")
"""Postprocessors of CPUs without which a program is right all the same."""

_RULES = ("AutoInline", "AddRFactor", "MultiLevelTiling", "RandomComputeLocation")
"""Rules to leave out first, in this order; what is left out of a GPU's, it may not run without."""

_SIMPLEST = ("InlineConstantScalars", "ParallelizeVectorizeUnroll")
"""Rules that ask least of a task: they split no loop and move no block."""

_SCHEDULES_NOTHING = {"GetSBlock", "GetLoops", "GetConsumers", "GetProducers", "GetOutputBlocks"}

_BY_HAND = '"schedule_rule": "None"'
"""How TVM writes a block's annotation that no rule is to change it."""


@dataclass(frozen=True)
class Rules:
    """Schedule rules and postprocessors to derive a task with.

    Attributes
    ----------
    words
        How they differ from TVM's own for the target, e.g. ``"without MultiLevelTiling"``.
    change
        Makes them of TVM's own; ``None`` if they are these.
    """

    words: str = ""
    change: Callable[[list[Any], list[Any]], tuple[list[Any], list[Any]]] | None = None

    def context(self, task: Task, num_threads: int = 1) -> Any:
        """Return the ``TuneContext`` of a task."""
        context = _context(task, "post-order-apply", num_threads)
        space = context.space_generator
        theirs, postprocessors = list(space.sch_rules), list(space.postprocs)
        rules = rules_beside(theirs, task)
        if self.change is None and rules is theirs:
            return context
        if self.change is not None:
            rules, postprocessors = self.change(rules, postprocessors)
        changed = ms.space_generator.PostOrderApply(
            sch_rules=rules,
            postprocs=postprocessors,
            mutator_probs=dict(space.mutator_probs.items()),
        )
        return _context(task, changed, num_threads)


@dataclass(frozen=True)
class Derivation:
    """What came of deriving a task.

    Attributes
    ----------
    rules
        What it was derived with.
    traces
        The instructions of each sketch, with the annotations it starts from.
    left
        Why there is none; ``None`` if there is.
    """

    rules: Rules
    traces: Sequence[list[Any]]
    left: str | None = None


def derived(task: Task) -> Derivation:
    """Derive the design space of a task; what failed is logged once."""
    return _derived(_Key(task.workload_id, json.dumps(task.target, sort_keys=True), task))


def postprocessed(context: Any, schedule: Any) -> Any | None:
    """Postprocess a schedule; ``None`` if it is refused, see :func:`refusal`."""
    return schedule if refusal(context, schedule) is None else None


def refusal(context: Any, schedule: Any) -> str | None:
    """Postprocess a schedule, and say in a line why it is refused; ``None`` if it is not.

    A postprocessor refuses it or fails on it, or it asks more of a GPU than that has.
    """
    schedule.enter_postproc()
    try:
        for postprocessor in context.space_generator.postprocs:
            name = _name(postprocessor)
            if name == "RewriteParallelVectorizeUnroll":
                keep_instructions_whole(schedule)
                if has_sums_in_memory(schedule):
                    return "its sums are more than registers hold"
                let_what_follows_be_vectors(schedule)
            if name == "RewriteReductionBlock":
                start_where_computed(schedule)
            if name == "RewriteTensorize" and not make_instructions(schedule):
                return "an instruction does not fit it"
            if not postprocessor.apply(schedule):
                problem = _launch_problem(context, schedule) if name == "VerifyGPUCode" else None
                return problem or f"{name} refuses it"
            if name == "RewriteParallelVectorizeUnroll":
                unroll_no_more_than_helps(schedule)
        return _launch_problem(context, schedule)
    except Exception as error:  # Whatever TVM has against this program, others may do.
        return f"TVM's postprocessors fail on it ({_message(error)})"


def _launch_problem(context: Any, schedule: Any) -> str | None:
    if context.target.kind.name != "cuda":
        return None
    return why_not_launched(schedule.mod, context.target.attrs)


@dataclass(frozen=True)
class _Key:
    workload_id: str
    target: str
    task: Task = field(compare=False)


@functools.lru_cache(_REMEMBERED)
def _derived(key: _Key) -> Derivation:
    task = key.task
    why = ""
    for rules in _attempts(task):
        try:
            found = _attempt(task, rules)
        except _FailedError as failure:
            why = why or str(failure)
            continue
        if why:
            _log.warning("%s: %s; its design space is derived %s", task.title, why, rules.words)
        return found
    _log.warning("%s is left as TVM compiles it: %s", task.title, why)
    return Derivation(Rules(), [], why)


class _FailedError(Exception):
    """A task cannot be derived this way; the message says why."""


def _attempt(task: Task, rules: Rules) -> Derivation:
    try:
        with stderr_silenced():  # Pooling names rules that TVM does not have, and TVM warns.
            context = rules.context(task)
            schedules = context.generate_design_space()
            traces = [trace_to_json(schedule.trace)[0] for schedule in schedules]
    except Exception as error:
        raise _FailedError(f"a schedule rule of TVM fails on it ({_message(error)})") from None
    if all(step[0] in _SCHEDULES_NOTHING for trace in traces for step in trace):
        by_hand = _BY_HAND in task.mod.script(show_meta=False)
        why = (
            "it is scheduled by hand" if by_hand else "there is nothing in it that TVM can schedule"
        )
        return Derivation(rules, [], why)
    if task.target["kind"] == "llvm":
        _check_any_is_valid(task, context, traces)
    return Derivation(rules, traces)


def _check_any_is_valid(task: Task, context: Any, traces: Sequence[list[Any]]) -> None:
    draws = max(_DRAWS, len(traces))
    for number in range(draws):
        schedule = tvm.s_tir.Schedule(task.mod, seed=number + 1, error_render_level="none")
        try:
            with stderr_silenced():
                trace_from_json(traces[number % len(traces)], [], schedule)
                if postprocessed(context, schedule) is not None:
                    return
        except Exception:
            continue
    raise _FailedError(f"none of {draws} programs that TVM's rules make of it is valid")


def _attempts(task: Task) -> Iterator[Rules]:
    """Rules to try, those that are most like TVM's own first."""
    yield Rules()
    space = _context(task, "post-order-apply").space_generator
    names = [_name(rule) for rule in space.sch_rules]
    if task.target["kind"] == "llvm":
        yield Rules("inlining conditions, too", _inlining(disallow_if_then_else=False))
        free = {"require_injective": False, "require_ordered": False}
        yield Rules("inlining all it can", _inlining(disallow_if_then_else=False, **free))
        yield from (Rules(f"without {name}", _without(name)) for name in _DISPENSABLE)
    known = sorted(set(names) & set(_RULES), key=_RULES.index)
    yield from (Rules(f"without {name}", _without(name)) for name in known)
    others = sorted(set(names) - {*_RULES, *_SIMPLEST})
    yield from (Rules(f"without {name}", _without(name)) for name in others)
    if task.target["kind"] == "llvm":
        yield Rules("by the simplest rules", _without(*(set(names) - {*_SIMPLEST}), *_DISPENSABLE))


def _without(*names: str) -> Callable[[list[Any], list[Any]], tuple[list[Any], list[Any]]]:
    def change(rules: list[Any], postprocessors: list[Any]) -> tuple[list[Any], list[Any]]:
        kept = (
            [one for one in some if _name(one) not in names] for some in (rules, postprocessors)
        )
        return next(kept), next(kept)

    return change


def _inlining(**relaxed: bool) -> Callable[[list[Any], list[Any]], tuple[list[Any], list[Any]]]:
    """Inline what TVM does, and what it would not for the settings that are relaxed."""
    settings = {
        "into_producer": False,
        "into_consumer": True,
        "inline_const_tensor": True,
        "disallow_if_then_else": True,
        "require_injective": True,
        "require_ordered": True,
    }
    inline = ms.schedule_rule.AutoInline(**{**settings, **relaxed}, disallow_op=["tirx.exp"])

    def change(rules: list[Any], postprocessors: list[Any]) -> tuple[list[Any], list[Any]]:
        return [inline if _name(r) == "AutoInline" else r for r in rules], postprocessors

    return change


def _message(error: Exception) -> str:
    return quoted(error).removeprefix("Error message: ").removesuffix(".")


def _name(rule: Any) -> str:
    return type(rule).__name__


def _context(task: Task, space_generator: Any, num_threads: int = 1) -> Any:
    return ms.TuneContext(
        mod=task.mod,
        target=task.tvm_target(),
        space_generator=space_generator,
        search_strategy="evolutionary",
        task_name=task.name,
        num_threads=num_threads,
        rand_state=1,
    )
