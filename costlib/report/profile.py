"""Where a call of a run's networks spends its time, as noted when they were compiled."""

from __future__ import annotations

from collections.abc import Sequence

from costlib.report.found_run import FoundRun
from costlib.report.page import Bar, Fold, Gallery, Link, Part, Picture, Section, Sentence, Table
from costlib.report.timeline import timeline_figure
from costlib.report.units import plain, share
from costlib.tuning.profile import KernelProfile, NetworkProfile, total_s

PLACE = "profile"
"""What the section is linked by."""

_NETWORKS = 6
"""Networks whose kernels are drawn and listed."""

_TASKS = 12
"""Of a network with a row of their own, the slowest."""

_NAMED = 3
"""Tasks that a sentence names."""

_SUMS = (
    "network", ">a call", ">kernels as tuned", ">slower in the network", ">dispatch",
    ">noting the times takes",
)  # fmt: skip
_KERNELS = (
    "task", ">calls", "share of the call", ">in the network", ">as tuned", ">GFLOP/s", ">GB/s",
)  # fmt: skip

_TITLE = "Where the time of a call goes"


def profile_section(run: FoundRun) -> Section | None:
    """Say where the time of a run's compiled networks goes; ``None`` if there are none."""
    if not run.result.networks:
        return None
    if not run.profiles:
        return Section(
            _TITLE, f"Nothing has noted that yet: `costlib profile {run.folder.name}` does."
        )
    unit = run.unit
    sums = [
        [
            one.network,
            unit.text(one.network_s),
            *(
                f"{unit.text(part_s)} ({share(part_s / one.network_s)})"
                for part_s in (one.tasks_s, one.unexplained_s, one.dispatch_s)
            ),
            share(max(one.tracing, 0.0)),
        ]
        for one in run.profiles
    ]
    shown = run.profiles[:_NETWORKS]
    pictures = [
        Picture(f"timeline-{number}", f"kernels of {one.network} in time", figure)
        for number, one in enumerate(shown, start=1)
        if one.kernels and (figure := timeline_figure(one, unit))
    ]
    parts: list[Part] = [Table(_SUMS, sums)]
    if pictures:
        parts.append(Gallery(pictures))
    return Section(
        _TITLE,
        "A network notes when each of its kernels begins. One takes longer in it than when it was "
        "tuned where caches are cold, other threads are still at work, or what it reads was "
        "written by a core that shares no cache with its own. GB/s counts what a "
        f"kernel reads and writes once; the machine reads {_bandwidth(run.profiles)} from memory.",
        [*parts, *_kernel_parts(run, shown)],
        PLACE,
    )


def profile_sentences(run: FoundRun) -> list[Sentence]:
    """Say of each profiled network what its call consists of, and which tasks take most of it."""
    return [_sentence(run, one) for one in run.profiles]


def _sentence(run: FoundRun, one: NetworkProfile) -> Sentence:
    unit = run.unit
    more = "more" if one.unexplained_s >= 0 else "less"
    sentence: list[str | Link] = [
        f"A call of {one.network} takes {unit.text(one.network_s)}: its kernels "
        f"{unit.text(one.tasks_s)} as they were tuned, {unit.text(abs(one.unexplained_s))} {more} "
        f"in the network, and the dispatch between them {unit.text(one.dispatch_s)}."
    ]
    slowest = one.by_task()[:_NAMED]
    for place, calls in enumerate(slowest):
        before = " Most is in " if not place else " and " if place == len(slowest) - 1 else ", "
        sentence += [before, _named(run, calls[0]), f" ({share(total_s(calls) / one.network_s)})"]
    return [*sentence, "."] if slowest else sentence


def _named(run: FoundRun, kernel: KernelProfile) -> str | Link:
    """Return what a kernel is called, leading to its task if the run has that."""
    return run.link(kernel.workload_id) if kernel.workload_id in run.titles else kernel.name


def _kernel_parts(run: FoundRun, shown: Sequence[NetworkProfile]) -> list[Part]:
    """Return the table of each network's kernels, folded where there are several."""
    if len(shown) == 1:
        return [_kernels(run, shown[0])]
    return [Fold(f"Kernels of {one.network}", _kernels(run, one)) for one in shown]


def _kernels(run: FoundRun, one: NetworkProfile) -> Table:
    groups = one.by_task()
    rows = [_row(run, one, calls) for calls in groups[:_TASKS]]
    if rest := [kernel for calls in groups[_TASKS:] for kernel in calls]:
        part = total_s(rest) / one.network_s
        rows.append(
            [f"{len(groups) - _TASKS} others", len(rest), Bar(part, share(part)), *["-"] * 4]
        )
    return Table(_KERNELS, rows)


def _row(run: FoundRun, one: NetworkProfile, calls: Sequence[KernelProfile]) -> list[object]:
    kernel, part = calls[0], total_s(calls) / one.network_s
    latency_s = total_s(calls) / len(calls)
    return [
        _named(run, kernel),
        len(calls),
        Bar(part, share(part)),
        run.unit.text(latency_s),
        run.unit.text(kernel.tuned_s),
        plain(kernel.flops / latency_s / 1e9) if kernel.flops else "-",
        plain(kernel.nbytes / latency_s / 1e9),
    ]


def _bandwidth(profiles: Sequence[NetworkProfile]) -> str:
    return f"{plain(max(one.memory_bytes_per_s for one in profiles) / 1e9)} GB/s"
