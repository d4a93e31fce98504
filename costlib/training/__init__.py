"""From a dataset to fitted models and honest figures about them.

- :mod:`~costlib.training.batches`: a dataset as arrays, with labels and groups: all of it, or a
  stream of any size;
- :mod:`~costlib.training.out_of_core`: fit a GBDT on a dataset that does not;
- :mod:`~costlib.training.metrics`: how well scores rank, and whether a model is as sure as it is
  right;
- :mod:`~costlib.training.fit`: fit a model on some tasks, judge it on others;
- :mod:`~costlib.sketch_pool`: vectors of decisions that evolve under a model;
- :mod:`~costlib.generator.fit`: a generator trained on programs as
  :mod:`~costlib.generator.sentences`, measured ones, :mod:`~costlib.generator.imagined` ones and
  those of :mod:`~costlib.generator.invented` tasks.
"""
