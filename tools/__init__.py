"""What measures costlib, and what becomes of it; run from the repository's root.

``python -m tools.benchmarks.search heavy``, say. Data flows one way: ``benchmarks``, ``fuzz`` and
``maintenance`` write files in ``tools/results``; ``evidence`` makes summaries and pages of them.
"""
