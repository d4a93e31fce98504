"""Networks whose dimensions have ranges: which shapes are compiled, and how others are served.

- :mod:`~costlib.workloads.ranges.dimension`: a named dimension with a range;
- :mod:`~costlib.workloads.ranges.points`: which extents of it are compiled;
- :mod:`~costlib.workloads.ranges.symbolic`: a network at any extents, which is a
  :mod:`~costlib.workloads.ranges.torch_program` or an :mod:`~costlib.workloads.ranges.onnx_model`;
- :mod:`~costlib.workloads.ranges.onnx_node`, :mod:`~costlib.workloads.ranges.onnx_operators`,
  :mod:`~costlib.workloads.ranges.onnx_moving`, :mod:`~costlib.workloads.ranges.onnx_program`:
  an ONNX model as a program of PyTorch;
- :mod:`~costlib.workloads.ranges.labels`, :mod:`~costlib.workloads.ranges.walk`,
  :mod:`~costlib.workloads.ranges.moving`, :mod:`~costlib.workloads.ranges.mixing`,
  :mod:`~costlib.workloads.ranges.rules`: along which axes an operator mixes elements;
- :mod:`~costlib.workloads.ranges.masks`, :mod:`~costlib.workloads.ranges.rewriting`,
  :mod:`~costlib.workloads.ranges.padding`: a larger shape that computes a smaller one;
- :mod:`~costlib.workloads.ranges.ranged`: the network at each point, and a program of any shape;
- :mod:`~costlib.workloads.ranges.table`: which point serves a shape.
"""
