"""Scripts that measure, each into a file of ``tools/results``."""
