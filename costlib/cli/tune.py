"""``costlib tune``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from costlib.cli.options import (
    Cores,
    Dim,
    Events,
    Key,
    LayoutsOption,
    Mcpu,
    Minutes,
    Seed,
    Target,
    TrackerAddress,
    chosen_fleet,
    chosen_hardware,
    chosen_layouts,
    event_file,
    one_of,
)
from costlib.cli.output import Json, milliseconds, print_json, print_table
from costlib.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from costlib.hardware import Hardware
    from costlib.measure.fleet import Fleet
    from costlib.search.tasks.scheduler import Objective
    from costlib.tuning.progress import TuneProgress
    from costlib.tuning.ranges import RangeResult
    from costlib.tuning.result import NetworkResult, TuneResult, UntimedNetwork
    from costlib.tuning.vendor import Vendor
    from costlib.workloads.half_precision import HalfFormat
    from costlib.workloads.small_weights import WeightFormat


def tune(
    sources: Annotated[
        list[str], typer.Argument(help="Networks, operators (quoted) or files, as for `tasks`.")
    ],
    out: Annotated[Path, typer.Option(help="The run's folder.")] = Path("run"),
    trials: Annotated[
        int | None,
        typer.Option(
            help="Programs to measure, all sessions together; 16 of each task by default.",
            show_default=False,
        ),
    ] = None,
    minutes: Minutes = None,
    objective: Annotated[
        str, typer.Option(help="`sum`, `requirement`, `speedup` or `early-stop`.")
    ] = "sum",
    required_ms: Annotated[
        list[float] | None,
        typer.Option(help="For `requirement`: what a network may take; once for each."),
    ] = None,
    min_gain: Annotated[
        float, typer.Option(help="Stop when a batch promises less than this share.")
    ] = 0.0,
    pretrained: Annotated[
        str | None,
        typer.Option(
            help="The bundle: a name, a folder, an address like hf://me/mine, or `none`; a shipped "
            "one that has seen such hardware by default.",
            show_default=False,
        ),
    ] = None,
    memory: Annotated[
        Path | None, typer.Option(help="A folder that remembers the best programs of all runs.")
    ] = None,
    layouts: LayoutsOption = "channels-last",
    weights: Annotated[
        str | None, typer.Option(help="Keep the weights of products in `int8` or `int4`.")
    ] = None,
    dim: Dim = None,
    dtype: Annotated[
        str | None,
        typer.Option(help="Multiply in `bfloat16`, `float16` or `tf32`, with sums in float32."),
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(
            help="Engines to compare with beside PyTorch: `openvino`, `onnxruntime`, "
            "`torch.compile`, `torch.compile-max-autotune`; `openvino-bf16`, `torch-bf16`; "
            "`openvino-` or `onnxruntime-` with `int8-weights` or `int4-weights`."
        ),
    ] = None,
    vendor: Annotated[
        str | None,
        typer.Option(
            help="`onednn`: take its kernel for a product where it is faster; the network then "
            "needs the library."
        ),
    ] = None,
    allow_different: Annotated[
        bool,
        typer.Option(
            "--allow-different",
            help="Tune a network even if it computes something else than its original.",
        ),
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.")] = False,
    seed: Seed = 0,
    target: Target = "cpu",
    mcpu: Mcpu = None,
    cores: Cores = None,
    simulate: Annotated[
        bool,
        typer.Option(
            "--simulate",
            help="Measure nothing: build for --target, which need not be here, and make all "
            "latencies up.",
        ),
    ] = False,
    tracker: TrackerAddress = None,
    key: Key = None,
    tensorboard: Events = None,
    as_json: Json = False,
) -> None:
    """Tune networks with a pretrained bundle and compare them with PyTorch.

    Writes the compiled networks, what was measured, a MetaSchedule database of the best programs,
    the result and a picture of the curve. Ctrl-C ends the search and compiles what was found.

    Example: `costlib tune bert_tiny --trials 64 --out runs/bert_tiny`
    """
    from costlib.measure.limits import check_address_space

    check_address_space()
    from costlib.cli.child import survive_import
    from costlib.cli.live import live_tuning
    from costlib.places import held
    from costlib.report.curve import draw_curve
    from costlib.report.events import TUNED
    from costlib.tuning.config import TuneConfig
    from costlib.tuning.session import check_place
    from costlib.tuning.tune import tune as run
    from costlib.workloads.ranges.dimension import parse_dims

    dims = parse_dims(dim or [])
    sources, engines = _apart(sources, against or [])
    config = TuneConfig(
        objective=_objective(objective),
        required_s=tuple(ms / 1e3 for ms in required_ms or ()),
        min_gain=min_gain,
        layouts=chosen_layouts(layouts),
        weights=_weights(weights),
        dtype=_dtype(dtype),
        memory=memory,
        allow_different=allow_different,
        against=tuple(engines),
        vendor=_vendor(vendor),
    )
    with held(out, "tuned"):
        check_place(out, resume=resume)
    survive_import(sources)
    with (
        chosen_fleet(tracker, key) as fleet,
        event_file(tensorboard) as events,
        live_tuning() as live,
    ):
        if events is not None:
            names = {
                "networks": ", ".join(sources),
                "bundle": pretrained or "",
                "objective": objective,
            }
            events.settings({**names, "trials": trials or "usual", "seed": seed}, [TUNED])

        def show(progress: TuneProgress) -> None:
            live(progress)
            if events is not None:
                events.tuning(progress)

        result = run(
            *sources,
            out=out,
            trials=trials,
            minutes=minutes,
            bundle=pretrained,
            hardware=_hardware(fleet, target, mcpu, cores, simulate),
            seed=seed,
            resume=resume,
            config=config,
            fleet=fleet,
            dim=dims,
            on_progress=show,
        )
    picture = draw_curve(out)
    if as_json:
        print_json(result.model_dump(mode="json") | {"picture": str(picture)})
    else:
        _print_result(result, picture)


_DOUBT = " (its turns differ: the machine is busy, do not rely on it)"


def _objective(name: str) -> Objective:
    from costlib.search.tasks.scheduler import OBJECTIVES

    return one_of(OBJECTIVES, name, "objective is")


def _apart(sources: list[str], against: list[str]) -> tuple[list[str], list[str]]:
    """Tell engines from sources: the second name after `--against` is taken for a source."""
    if not against:
        return sources, []
    from costlib.tuning.engines.catalogue import ENGINES, check_engines

    check_engines(against)
    engines = [*against, *(name for name in sources if name in ENGINES)]
    return [name for name in sources if name not in ENGINES], list(dict.fromkeys(engines))


def _print_result(result: TuneResult, picture: Path) -> None:
    compiled = [network.network for network in result.networks]
    compiled += [network.network for network in result.untimed]
    tasks = [task for task in result.tasks if {*compiled} & task.calls.keys()]
    in_ranges = {point.network for one in result.ranges for point in one.points}
    rows = [
        (
            task.title,
            "+".join(str(calls) for calls in task.calls.values()),
            task.trials,
            milliseconds(task.latency_before_s),
            milliseconds(task.latency_after_s),
            f"{task.gflops_per_s:.1f}" if task.gflops_per_s else "-",
        )
        for task in tasks
    ]
    columns = ["task", ">calls", ">trials", ">before", ">after", ">GFLOP/s"]
    made_up = ": every latency is SIMULATED" if result.simulated else ""
    print_table(f"{', '.join(compiled)} on {result.hardware_id}{made_up}", columns, rows)
    if left := [(task.title, task.left) for task in tasks if task.left]:
        print_table("left as TVM compiles them", ["task", "why"], left)
    if by_vendor := [task for task in tasks if task.vendor_s is not None]:
        both = [
            (task.title, milliseconds(task.latency_after_s), milliseconds(task.vendor_s))
            for task in by_vendor
        ]
        print_table("computed by oneDNN", ["task", ">tuned", ">oneDNN"], both)
    for untimed in result.untimed:
        compared = [("not compared", untimed.not_compared or "")]
        if untimed.not_compared is None:
            compared = _differences(untimed)
        lines = [("latency", "none: the device is simulated"), *compared]
        print_table(untimed.network, ["", ""], [*lines, ("compiled network", untimed.library)])
    for network in result.networks:
        if network.network in in_ranges:
            continue
        latencies = {
            "PyTorch": network.pytorch_latency_s,
            **{engine.title: engine.latency_s for engine in network.engines},
            "tuned": network.latency_after_s,
            "untuned": network.latency_before_s,
        }
        lines = [
            (what, milliseconds(secs) + _DOUBT * (what in network.doubtful))
            for what, secs in latencies.items()
        ]
        difference, largest = _differences(network)
        lines += [difference, *_rounding(network.rounding_error), largest]
        lines.append(("compiled network", network.library))
        if network.needs:
            lines.append(("needs where it runs", ", ".join(network.needs)))
        print_table(network.network, ["", ""], lines)
    for one in result.ranges:
        _print_range(one, result.networks)
    lines = [
        ("trials", f"{result.trials}: {result.stopped}"),
        ("elapsed", f"{result.elapsed_s:.0f} s"),
        ("searching / measuring", f"{result.search_s:.0f} s / {result.measure_s:.0f} s"),
        ("tuning curve", str(picture)),
    ]
    if result.config.get("vendor") and not by_vendor:
        lines.append(("oneDNN", "faster for no task: not called"))
    print_table("result", ["", ""], lines)


def _hardware(
    fleet: Fleet | None, target: str, mcpu: str | None, cores: int | None, simulate: bool
) -> Hardware:
    """Return what is tuned for: what the fleet is, or what the options name."""
    if fleet is not None:
        hardware = fleet.only_hardware()
        if target != "cpu" and chosen_hardware(target, mcpu, cores).family != hardware.family:
            raise InputError(
                f"the fleet's devices are {hardware.hardware_id}, not {target}: leave out --target"
            )
    else:
        hardware = chosen_hardware(target, mcpu, cores)
    return hardware.simulated() if simulate else hardware


def _print_range(found: RangeResult, networks: Sequence[NetworkResult]) -> None:
    from costlib.tuning.ranges import sizes_text
    from costlib.workloads.agreement import largest_of

    at = {network.network: network for network in networks}
    engines = list(dict.fromkeys(e.title for p in found.points for e in at[p.network].engines))
    seconds = [{e.title: e.latency_s for e in at[p.network].engines} for p in found.points]
    rows = [
        (
            sizes_text(point.sizes),
            point.trials,
            milliseconds(point.latency_before_s),
            milliseconds(point.latency_after_s),
            milliseconds(point.pytorch_latency_s),
            *(milliseconds(taken_s.get(title)) for title in engines),
        )
        for point, taken_s in zip(found.points, seconds, strict=True)
    ]
    columns = ["tuned at", ">trials", ">before", ">after", ">PyTorch", *(f">{e}" for e in engines)]
    print_table(f"{found.network} in any shape", columns, rows)
    lines = [("between", found.between)]
    lines += [
        (
            f"{sizes_text(one.sizes)} by {sizes_text(one.served_by)}",
            f"off by {one.max_abs_error or 0:.2e}",
        )
        for one in found.compared
    ]
    lines += _rounding(largest_of(one.rounding_error for one in found.compared))
    lines.append(("compiled network", found.library))
    print_table(f"compared with {found.compared[0].original}", ["", ""], lines)


def _weights(name: str | None) -> WeightFormat | None:
    match name:
        case None | "int8" | "int4":
            return name
        case _:
            raise InputError(f"there are no weights '{name}'; choose int8 or int4")


def _differences(network: NetworkResult | UntimedNetwork) -> list[tuple[str, str]]:
    return [
        (f"largest difference from {network.original}", f"{network.max_abs_error:.2e}"),
        ("largest output", f"{network.max_abs_output:.2e}"),
    ]


def _dtype(name: str | None) -> HalfFormat | None:
    match name:
        case None | "bfloat16" | "float16" | "tf32":
            return name
        case _:
            raise InputError(f"nothing is multiplied in '{name}'; choose bfloat16, float16 or tf32")


def _vendor(name: str | None) -> Vendor | None:
    match name:
        case None | "onednn":
            return name
        case _:
            raise InputError(f"no vendor's kernels are called '{name}'; choose onednn")


def _rounding(error: float | None) -> list[tuple[str, str]]:
    return [] if error is None else [("difference that rounding makes", f"{error:.2e}")]
