"""From tasks and a bundle to the best programs.

- :mod:`~costlib.search.tune`: the whole path from networks to faster programs;
- :mod:`~costlib.search.run`: the loop, on a device and in a folder;
- :mod:`~costlib.search.scheduler`: which task next;
- :mod:`~costlib.search.strategy`: which programs of it;
- :mod:`~costlib.search.evolution`: Ansor's way to find them, with its parts
  :mod:`~costlib.training.sketch_pool` (evolution in arrays), :mod:`~costlib.search.sketch_choice`,
  :mod:`~costlib.search.batch_selection` and :mod:`~costlib.search.run_model`;
- :mod:`~costlib.search.metaschedule`, :mod:`~costlib.search.cost_model`: drop-ins for MetaSchedule;
- :mod:`~costlib.search.compiled`, :mod:`~costlib.search.comparison`: compiled networks.
"""
