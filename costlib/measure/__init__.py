"""From programs to measurements.

- :mod:`~costlib.measure.server`: a single-threaded process that has TVM loaded and forks a
  child for each build and each run; :mod:`~costlib.measure.jobs` is what the children do;
- :mod:`~costlib.measure.canary`: reference kernels that tell a slow program from a slow moment
  (:mod:`~costlib.measure.canary_kernels`), and :mod:`~costlib.measure.correction`, which does so;
- :mod:`~costlib.measure.client`: the caller's end of the server;
- :mod:`~costlib.measure.measurer`: programs in, measurements out.
"""
