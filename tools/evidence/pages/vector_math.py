"""Elementary functions and reductions, as TVM and as costlib compile them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tools.evidence.files import read_result
from tools.evidence.markdown import between, table, times
from tools.evidence.pages.page import Page
from tools.evidence.provenance import measured

_SIDES = ("tvm", "costlib")


def parts() -> list[str]:
    """Return the page."""
    result = read_result("vector_math")
    return [
        "TVM calls the C library for `exp` and `erf`, a number at a time. In programs that costlib "
        "compiles for a CPU they are polynomials, which vector instructions compute; `tanh` and "
        "`sigmoid` gain as well, and with them softmax, GELU and SiLU. Where the innermost loop of "
        "a program is a sum or a maximum along a row, TVM adds one number after the other; costlib "
        "does so in lanes, and combines them in the end. The table has nanoseconds a number, the "
        "range over the turns of both sides, and the largest relative error, on one core with "
        f"`{result['mcpu']}` code. Rows have {result['columns']} numbers.",
        table(
            ["function", "TVM, ns", "range", "costlib, ns", "range", "faster", "error", "of TVM"],
            [
                [
                    f"`{name}`",
                    *(text for side in _SIDES for text in _times(sides[side])),
                    times(sides["tvm"]["ns"] / sides["costlib"]["ns"]),
                    *(f"{sides[side]['relative_error']:.1e}" for side in reversed(_SIDES)),
                ]
                for name, sides in result["functions"].items()
            ],
        ),
        *measured("vector_math"),
    ]


def _times(side: Mapping[str, Any]) -> list[str]:
    return [f"{side['ns']:.2f}", between(*side["ns_range"])]


PAGE = Page("vector-math", "Functions and reductions", parts, ("vector_math",))
