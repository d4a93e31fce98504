"""A tuning run: networks in, compiled and compared networks out.

- :mod:`~costlib.tuning.tune`: the whole path;
- :mod:`~costlib.tuning.run`: the loop, on a device and in a folder;
- :mod:`~costlib.tuning.compiled`, :mod:`~costlib.tuning.comparison`: compiled networks.
"""
