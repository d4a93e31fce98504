"""From tasks and a bundle to the best programs.

- :mod:`~costlib.search.cost_model`: a bundle as a drop-in MetaSchedule cost model;
- :mod:`~costlib.search.evolution`: MetaSchedule's search, with costlib's parts;
- :mod:`~costlib.search.compiled`: networks compiled, saved, loaded and called;
- :mod:`~costlib.search.comparison`: a tuned network against the untuned one and PyTorch;
- :mod:`~costlib.search.tune`: the whole path from a network to a faster program.
"""
