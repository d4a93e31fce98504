"""From a dataset to fitted models and honest figures about them.

- :mod:`~costlib.training.assemble`: a dataset as arrays, with labels and groups;
- :mod:`~costlib.training.metrics`: top-k and pairwise accuracy;
- :mod:`~costlib.training.fit`: fit a model on some tasks, judge it on others.
"""
