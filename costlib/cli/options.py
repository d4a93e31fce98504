"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from costlib.errors import InputError
from costlib.workloads.layout_choice import LAYOUTS, Layouts

if TYPE_CHECKING:
    from costlib.hardware import Hardware
    from costlib.measure.fleet import Fleet
    from costlib.report.events import EventFile

_Name = TypeVar("_Name", bound=str)

Target = Annotated[
    str,
    typer.Option(
        help="`cpu` or `cuda` of this machine, `cuda:sm_80` or `aarch64+dotprod` for a GPU or an "
        "ARM64 processor that need not be here, or a target as TVM writes it, "
        "`llvm -mcpu=x86-64-v3 -num-cores 4`."
    ),
]
Mcpu = Annotated[
    str | None,
    typer.Option(
        help="LLVM processor or level to generate code for, e.g. `x86-64-v2`; "
        "the best this machine runs by default, or as `native`.",
        show_default=False,
    ),
]
Cores = Annotated[
    int | None,
    typer.Option(help="Cores that a program may use; all by default.", show_default=False, min=1),
]
LayoutsOption = Annotated[
    str,
    typer.Option(
        "--layouts",
        help="`channels-last` for convolutions of networks on a CPU, with Winograd's algorithm, "
        "too; `given`; or `all`: as given, in NHWC and in blocks, either with Winograd's, too.",
    ),
]
Dim = Annotated[
    list[str] | None,
    typer.Option("--dim", help="A range of a dimension, `sequence=16:128`; once for each."),
]
TrackerAddress = Annotated[
    str | None,
    typer.Option(
        "--tracker", help="HOST:PORT of a TVM RPC tracker: measure on its devices, not here."
    ),
]
Key = Annotated[
    str | None, typer.Option("--key", help="By which the tracker knows the devices to use.")
]
Events = Annotated[
    Path | None,
    typer.Option("--tensorboard", help="A folder for TensorBoard's event files, written live."),
]
Minutes = Annotated[
    float | None, typer.Option(help="Stop after so many minutes; call again to go on.", min=0)
]
Seed = Annotated[int, typer.Option(help="The same seed draws the same programs.")]


@contextmanager
def chosen_fleet(tracker: str | None, key: str | None) -> Iterator[Fleet | None]:
    """Hold the devices that the options name for a while; none if no tracker is given."""
    if tracker is None:
        if key is not None:
            raise InputError("--key is given: say with --tracker where the devices are")
        yield None
        return
    from costlib.measure.device import Tracker
    from costlib.measure.fleet import Fleet

    with Fleet(Tracker.parse(tracker, key)) as fleet:
        yield fleet


def event_file(folder: Path | None) -> AbstractContextManager[EventFile | None]:
    """Open TensorBoard's event file; none if no folder is given."""
    if folder is None:
        return nullcontext()
    from costlib.report.events import EventFile

    return EventFile(folder)


def chosen_hardware(target: str, mcpu: str | None, cores: int | None) -> Hardware:
    """Find the hardware that the options name."""
    from costlib.hardware import find_hardware

    return find_hardware(target, mcpu=mcpu, num_cores=cores)


def chosen_layouts(name: str) -> Layouts:
    """Return the layouts of a name."""
    return one_of(LAYOUTS, name, "layouts are")


def one_of(known: Sequence[_Name], name: str, what: str) -> _Name:
    """Find a name among those that are known."""
    for one in known:
        if one == name:
            return one
    raise InputError(f"no {what} called '{name}'; use {', '.join(known)}")
