"""From programs to arrays.

- :mod:`~costlib.features.batch`: the arrays that cost models take;
- :mod:`~costlib.features.per_store`: what a lowered program does, a row for each buffer store;
- :mod:`~costlib.features.programs`: a dataset's programs, task after task;
- :mod:`~costlib.features.store`: the features of a dataset's programs on disk;
- :mod:`~costlib.features.build`: what is missing there is computed on all cores;
- :mod:`~costlib.features.worker`: the processes that do so.
"""
