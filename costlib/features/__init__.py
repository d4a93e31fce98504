"""From programs to arrays.

- :mod:`~costlib.features.batch`: the arrays that cost models take;
- :mod:`~costlib.features.per_store`: what a lowered program does, a row for each buffer store;
- :mod:`~costlib.features.store`: the features of a dataset's programs, computed once and kept.
"""
