"""From a task and a bundle to the programs to measure next.

- :mod:`~costlib.search.strategy`: what a search of one task is;
- :mod:`~costlib.search.evolution`: Ansor's, scored in two stages;
- :mod:`~costlib.search.tasks`: which task next, and which tasks help one another;
- :mod:`~costlib.search.run_model`: the models of a bundle, corrected by what a run measures.
"""
