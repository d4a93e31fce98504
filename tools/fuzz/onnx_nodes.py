"""Import, compile and run ONNX's own node tests: ``python -m tools.fuzz.onnx_nodes RESULTS.json``.

Resumable: what ``RESULTS.json`` has as right is not run again. Inputs that shapes are computed from
are made constants where a model is refused for them, as exporters write them.
"""

from __future__ import annotations

import json
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from costlib.errors import CostlibError
from costlib.hardware import Hardware
from costlib.tvm_compat import relax, tvm
from costlib.workloads import prepare_network
from costlib.workloads.importers.onnx import import_onnx_model

_MOST_SECS = 120
_SAVED_EVERY = 20
_TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2}

Arrays = Sequence[np.ndarray]
IsKept = Callable[[int, np.ndarray], bool]

_KEPT: list[IsKept] = [
    lambda i, array: True,
    lambda i, array: array.dtype.kind not in "iub" or array.ndim > 1,
    lambda i, array: i == 0,
]
"""Which inputs stay inputs, from one try to the next."""


def main(path: Path) -> None:
    """Run what ``path`` does not have as right, and write the outcomes into it."""
    from onnx.backend.test.case.node import collect_testcases

    outcomes: dict[str, list[str]] = json.loads(path.read_text()) if path.exists() else {}
    hardware = Hardware.local(num_cores=1)
    with np.errstate(all="ignore"):
        cases = collect_testcases(None)
    signal.signal(signal.SIGALRM, _give_up)
    for count, case in enumerate(cases):
        if outcomes.get(case.name, [""])[0] == "right":
            continue
        signal.alarm(_MOST_SECS)
        try:
            outcomes[case.name] = list(_outcome(case, hardware))
        except TimeoutError:
            outcomes[case.name] = ["timeout", ""]
        finally:
            signal.alarm(0)
        if count % _SAVED_EVERY == 0:
            path.write_text(json.dumps(outcomes, indent=0))
    path.write_text(json.dumps(outcomes, indent=0))
    print(dict(Counter(outcome for outcome, _ in outcomes.values())))


def _give_up(*_: Any) -> None:
    raise TimeoutError


def _outcome(case: Any, hardware: Hardware) -> tuple[str, str]:
    """Return ``right``, ``wrong``, ``refused`` or ``error``, and how."""
    result = ("refused", "")
    for inputs, outputs in case.data_sets:
        arrays = [_array(value) for value in inputs]
        expected = [_array(value) for value in outputs]
        for is_kept in _KEPT:
            try:
                result = _compared(
                    *_frozen(case.model, arrays, is_kept), expected, case.rtol, hardware
                )
            except CostlibError as error:
                result = ("refused", str(error))
            except TimeoutError:
                raise
            except Exception as error:
                result = ("error", f"{type(error).__name__}: {error}"[:500])
            if result[0] != "refused" or "depends on" not in result[1]:
                break
        if result[0] != "right":
            break
    return result


def _array(value: Any) -> Any:
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def _frozen(
    model: onnx.ModelProto, arrays: Sequence[Any], is_kept: IsKept
) -> tuple[onnx.ModelProto, list[Any]]:
    """Make constants of the inputs that are not kept; return the model and the other inputs."""
    result, kept = onnx.ModelProto(), []
    result.CopyFrom(model)
    del result.graph.input[:]
    for i, (value, array) in enumerate(zip(model.graph.input, arrays, strict=False)):
        if not isinstance(array, np.ndarray) or is_kept(i, array):
            result.graph.input.append(value)
            kept.append(array)
        else:
            result.graph.initializer.append(onnx.numpy_helper.from_array(array, value.name))
    return result, kept


def _compared(
    model: onnx.ModelProto, inputs: Arrays, expected: Arrays, rtol: float, hardware: Hardware
) -> tuple[str, str]:
    network = import_onnx_model(model, "node")
    with tvm.transform.PassContext(opt_level=3):
        program = tvm.compile(prepare_network(network, hardware), target=hardware.tvm_target())
    machine = relax.VirtualMachine(program, tvm.cpu())
    outputs = machine["main"](*[tvm.runtime.tensor(np.array(array)) for array in inputs])
    outputs = [outputs] if isinstance(outputs, tvm.runtime.Tensor) else outputs
    problems = list(_differences([output.numpy() for output in outputs], expected, rtol))
    return ("wrong", problems[0]) if problems else ("right", "")


def _differences(ours: Arrays, theirs: Arrays, rtol: float) -> Iterator[str]:
    if len(ours) != len(theirs):
        yield f"{len(ours)} outputs, not {len(theirs)}"
        return
    for one, other in zip(ours, map(np.asarray, theirs), strict=True):
        if (one.shape, one.dtype) != (other.shape, other.dtype):
            yield f"{one.dtype}{list(one.shape)}, not {other.dtype}{list(other.shape)}"
            continue
        bound = max(rtol, _TOLERANCE.get(str(one.dtype), 0))
        mine, wanted = one.astype("float64"), other.astype("float64")
        if not np.allclose(mine, wanted, rtol=bound, atol=1e-6, equal_nan=True):
            yield f"largest difference {np.nanmax(np.abs(mine - wanted))}"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
