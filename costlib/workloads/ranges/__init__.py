"""Networks whose dimensions have ranges: which shapes are compiled, and how others are served.

- :mod:`~costlib.workloads.ranges.dimension`: a named dimension and the points of its range;
- :mod:`~costlib.workloads.ranges.symbolic`: a network as a program of named extents;
- :mod:`~costlib.workloads.ranges.labels`, :mod:`~costlib.workloads.ranges.rules`,
  :mod:`~costlib.workloads.ranges.padding`: a larger shape that computes a smaller one;
- :mod:`~costlib.workloads.ranges.ranged`: the network at each point;
- :mod:`~costlib.workloads.ranges.table`: which point serves a shape.
"""
