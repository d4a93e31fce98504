"""What a machine with an NVIDIA GPU is asked for, the most useful first; see :mod:`__main__`."""
