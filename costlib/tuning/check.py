"""Does a network import, and does it compute what the original computes?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from costlib.errors import InputError, UnsupportedModelError
from costlib.frozen import Frozen
from costlib.hardware import Hardware
from costlib.processor import allow_tiles
from costlib.tuning.compiled import CompiledNetwork
from costlib.tuning.ranges import ShapeResult, compared_shapes
from costlib.tvm_compat import tvm
from costlib.tvm_compat.direct_calls import MAIN
from costlib.workloads import InputSpec, Network, load_network, prepare_network
from costlib.workloads.agreement import (
    MADE_UP,
    Expectation,
    OutputAgreement,
    largest_of,
    telling_inputs,
)
from costlib.workloads.extraction import tasks_of
from costlib.workloads.in_layouts import in_layouts
from costlib.workloads.layout_choice import Layouts
from costlib.workloads.ranges.dimension import Dims
from costlib.workloads.ranges.ranged import RangedNetwork, ranged
from costlib.workloads.ranges.table import Point

Status = Literal["right", "different", "unsupported"]


class CheckedTask(Frozen):
    """A task of a network that was checked."""

    name: str
    workload_id: str
    calls: int


class Check(Frozen):
    """What came of a check.

    Attributes
    ----------
    status
        ``right``: the network computes what the original does, or there is no original to compare
        with. ``different``: it does not. ``unsupported``: it cannot be imported or compiled.
    reason
        Why it is not right, in a line.
    max_abs_error
        Largest difference of any output on the inputs that came with it, or on random ones.
    outputs
        Each output, on the first inputs that showed a difference, else on the first.
    inputs
        Which inputs these were.
    unsupported_operators
        Names, as far as they are the reason.
    tasks
        What there is to tune.
    rounding_error
        Of a network that is rounded to fewer bits, the largest difference from its original on
        these inputs; ``max_abs_error`` is that from the network in float32 with its numbers
        rounded.
    shapes
        Of a network whose dimensions have ranges, the shapes that were compared.
    """

    network: str
    status: Status
    reason: str | None = None
    max_abs_error: float | None = None
    outputs: tuple[OutputAgreement, ...] = ()
    inputs: str | None = None
    unsupported_operators: tuple[str, ...] = ()
    tasks: tuple[CheckedTask, ...] = ()
    rounding_error: float | None = None
    shapes: tuple[ShapeResult, ...] = ()


def check(
    source: Any,
    inputs: tuple[InputSpec, ...] = (),
    *,
    example_inputs: Sequence[Any] | Mapping[str, Any] | None = None,
    hardware: Hardware | None = None,
    dim: Dims | None = None,
    layouts: Layouts = "channels-last",
) -> Check:
    """Import a network, compile it untuned and compare it with the original.

    Parameters
    ----------
    source, inputs, example_inputs
        See :func:`costlib.workloads.load_network`.
    hardware
        What to compile for; this machine by default.
    dim
        Ranges of dimensions by their names; see :func:`costlib.tune`. Both ends and some shapes
        between are compared.
    layouts
        In which layouts, see :func:`costlib.workloads.in_layouts.in_layouts`; of several the first
        that differs is what came of it.

    Raises
    ------
    InputError
        There is no such network, the file is not what its name says, or a network with ranges is
        to be checked in all layouts.
    """
    hardware = hardware or Hardware.local()
    allow_tiles(hardware.target)
    try:
        if (points := ranged(source, dim or {})) is not None:
            return _check_ranged(points, hardware, layouts)
        network = load_network(source, inputs, example_inputs=example_inputs)
        found = [_checked(*one, hardware) for one in in_layouts(network, hardware, layouts)]
    except UnsupportedModelError as error:
        name = source if isinstance(source, str) else type(source).__name__
        return Check(
            network=str(name),
            status="unsupported",
            reason=str(error),
            unsupported_operators=error.operators,
        )
    return next((one for one in found if one.status != "right"), found[0])


def _checked(network: Network, prepared: Any, hardware: Hardware) -> Check:
    """Compile a network in one layout untuned, and compare it."""
    machine = CompiledNetwork.build(prepared, hardware).machine
    rounded = None
    if network.is_rounded:
        module = prepare_network(network, hardware, in_float=True)
        rounded = CompiledNetwork.build(module, hardware).machine
    tasks = tuple(
        CheckedTask(name=task.name, workload_id=task.workload_id, calls=task.weight)
        for task in tasks_of(prepared, hardware.target)
    )
    return compared(network, machine, rounded).model_copy(update={"tasks": tasks})


def _check_ranged(given: RangedNetwork, hardware: Hardware, layouts: Layouts) -> Check:
    """Compile all points of a network untuned, and compare it at several shapes."""
    if layouts == "all":
        raise InputError(f"--layouts all takes networks of fixed shapes; {given.name} has ranges")
    versions = [next(in_layouts(point, hardware, layouts)) for point in given.networks]
    network = replace(given, networks=tuple(point for point, _ in versions))
    prepared = [module for _, module in versions]
    compiled = CompiledNetwork.build(network.as_one(prepared, hardware), hardware)
    tasks = {task.workload_id: task for mod in prepared for task in tasks_of(mod, hardware.target)}

    def call(point: Point, arrays: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        return run(compiled.machine, arrays, point.function)

    shapes = compared_shapes(network, call)
    worst = next((one for one in shapes if one.fault), shapes[0])
    errors = [one.max_abs_error for one in shapes if one.max_abs_error is not None]
    return Check(
        network=network.name,
        status="different" if worst.fault else "right",
        reason=f"with {worst.shape}, {worst.fault}" if worst.fault else None,
        max_abs_error=max(errors, default=None),
        outputs=worst.outputs,
        inputs=worst.shape,
        shapes=shapes,
        tasks=tuple(
            CheckedTask(name=task.name, workload_id=task.workload_id, calls=task.weight)
            for task in tasks.values()
        ),
    )


def compared(network: Network, machine: Any, rounded: Any = None) -> Check:
    """Compare a compiled network with the original on inputs of several kinds.

    That is with the same in float32 with its numbers rounded, if there is such a machine.
    """
    if network.reference is None:
        run(machine, [*network.random_inputs(0), *network.state])
        return Check(network=network.name, status="right", reason="there is no original")
    specs = [*network.interface.outputs, *network.interface.state]
    first: Check | None = None
    for name, arrays in telling_inputs(network):
        try:
            expectation = Expectation.of(network.reference, arrays, network.precision)
        except Exception:
            if first is None and not network.examples:
                raise
            continue
        rounding_error = None
        if rounded is not None:
            expected = run(rounded, [*arrays, *network.state])
            rounding_error = _largest_error(expectation.compare(specs, expected))
            expectation = Expectation(arrays, expected, precision=network.precision)
        actual = run(machine, [*arrays, *network.state])
        outputs = expectation.compare(specs, actual, nan_may_spread=name in MADE_UP)
        faults = [f"{output.name}: {output.fault}" for output in outputs if output.fault]
        found = Check(
            network=network.name,
            status="different" if faults else "right",
            reason=f"with {name}, {'; '.join(faults)}" if faults else None,
            max_abs_error=_largest_error(outputs),
            outputs=tuple(outputs),
            inputs=name,
            rounding_error=rounding_error,
        )
        if faults:
            return found
        first = first or found
    assert first is not None
    return first


def _largest_error(outputs: Sequence[OutputAgreement]) -> float | None:
    return largest_of(output.max_abs_error for output in outputs)


def run(machine: Any, arrays: Sequence[np.ndarray], function: str = MAIN) -> list[np.ndarray]:
    """Call a loaded network with flat inputs and state; return flat outputs and state."""
    outputs = machine[function](
        *(tvm.runtime.tensor(np.array(array, order="C")) for array in arrays)
    )
    found = [outputs] if hasattr(outputs, "numpy") else list(outputs)
    return [output.numpy() for output in found]
