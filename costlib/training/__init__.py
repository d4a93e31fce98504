"""From a dataset to fitted models and honest figures about them.

- :mod:`~costlib.training.batches`: a dataset of any size as a stream of arrays;
- :mod:`~costlib.training.assemble`: one that fits in memory as arrays, with labels and groups;
- :mod:`~costlib.training.out_of_core`: fit a GBDT on a dataset that does not;
- :mod:`~costlib.training.metrics`: top-k and pairwise accuracy;
- :mod:`~costlib.training.fit`: fit a model on some tasks, judge it on others.
"""
