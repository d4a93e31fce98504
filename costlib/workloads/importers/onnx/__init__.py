"""ONNX models, whose operators are written in Relax by converters of our own.

TVM's importer computes many operators wrongly or not at all
(:mod:`~costlib.workloads.importers.onnx.replaced` lists which, and why).

- :mod:`~costlib.workloads.importers.onnx.loading`: files, checked;
- :mod:`~costlib.workloads.importers.onnx.graph`: node after node, by ONNX's own inference of
  types, folding and definitions of operators by simpler ones;
- :mod:`~costlib.workloads.importers.onnx.catalogue`: the converters;
- :mod:`~costlib.workloads.importers.onnx.reference`: what a model ought to compute.
"""

from __future__ import annotations

from costlib.workloads.importers.onnx.importing import import_onnx, import_onnx_model

__all__ = ["import_onnx", "import_onnx_model"]
