"""From programs to arrays.

- :mod:`~costlib.features.batch`: the arrays that cost models take, and what in them describes
  task and hardware;
- :mod:`~costlib.features.lowered`: what a lowered program does, a row for each buffer store, and
  :mod:`~costlib.features.nest_features`, which makes numbers of its
  :mod:`~costlib.features.loop_nest`;
- :mod:`~costlib.features.schedule`: its decisions as they are written down, without lowering;
- :mod:`~costlib.features.programs`: a dataset's programs, task after task;
- :mod:`~costlib.features.store`: the features of a dataset's programs on disk;
- :mod:`~costlib.features.build`: what is missing there is computed on all cores;
- :mod:`~costlib.features.worker`: the processes that do so.
"""
