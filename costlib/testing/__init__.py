"""For tests of what is built on costlib; nothing else in the package imports it.

- :mod:`~costlib.testing.simulated`: a device that answers at once, exactly, from a formula;
- :mod:`~costlib.testing.surrogate`: one that answers as a real one probably would, with its
  :mod:`~costlib.testing.landscape` of latencies and its :mod:`~costlib.testing.noise`;
- :mod:`~costlib.testing.strategies`: what every search strategy must do;
- :mod:`~costlib.testing.cost_models`: what every cost model must do.

The two suites are classes of tests for pytest: subclass one in a test module, say what is tested,
and pytest runs all of it. ``pytest.register_assert_rewrite("costlib.testing")`` in ``conftest.py``
makes their failures speak.
"""
