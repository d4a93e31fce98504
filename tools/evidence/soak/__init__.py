"""Hours of tuning and collecting while the machine misbehaves; see :mod:`__main__` for how.

- :mod:`~tools.evidence.soak.rounds`: what a round does, drawn from a seed;
- :mod:`~tools.evidence.soak.faults`: what goes wrong meanwhile;
- :mod:`~tools.evidence.soak.children`: a command, and all processes that come of it;
- :mod:`~tools.evidence.soak.checks`: what must hold afterwards;
- :mod:`~tools.evidence.soak.simulated`: costlib over a device that is not there.
"""
