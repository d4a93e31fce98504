"""Which layouts a network is wanted in; needs no TVM, as plans and the command line say it, too."""

from __future__ import annotations

from typing import Literal, get_args

Layouts = Literal["channels-last", "all", "given"]
"""See :func:`costlib.workloads.in_layouts.in_layouts`."""

LAYOUTS: tuple[Layouts, ...] = get_args(Layouts)
