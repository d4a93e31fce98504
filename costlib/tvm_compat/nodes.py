"""The nodes of TVM's IR that costlib looks at, under one name each."""

from __future__ import annotations

from typing import Any

from costlib.tvm_compat import tirx, tvm

Expr: Any = tvm.ir.Expr
Call: Any = tvm.ir.Call
TensorLoad: Any = tvm.ir.expr.TensorLoad
Var: Any = tirx.Var
IntImm: Any = tirx.IntImm
Cast: Any = tirx.Cast
Select: Any = tirx.Select
Add: Any = tirx.Add
Sub: Any = tirx.Sub
Mul: Any = tirx.Mul
Div: Any = tirx.Div
FloorDiv: Any = tirx.FloorDiv
FloorMod: Any = tirx.FloorMod
Min: Any = tirx.Min
Max: Any = tirx.Max

For: Any = tirx.For
SeqStmt: Any = tirx.SeqStmt
IfThenElse: Any = tirx.IfThenElse
BufferStore: Any = tirx.BufferStore
SBlockRealize: Any = tvm.s_tir.SBlockRealize
