"""Merge what a benchmark measured since into its committed files.

    python -m tools.evidence.pack search          # into tools/results/search.parquet

What is packed is not measured again. The summaries (``tools/results/search.json``) of all that were
measured are written anew: one benchmark's may look at the races of another.
"""

from __future__ import annotations

import argparse

from tools.evidence.files import write_result
from tools.evidence.stores import STORES, SUMMARIES


def main() -> None:
    """Merge, then summarise."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("benchmarks", nargs="+", choices=STORES)
    for benchmark in parser.parse_args().benchmarks:
        print(f"{benchmark}: {STORES[benchmark].pack()} new")
    write_summaries()


def write_summaries() -> None:
    """Summarise all benchmarks of which there are pieces."""
    for benchmark, summarise in SUMMARIES.items():
        if STORES[benchmark].load():
            write_result(benchmark, summarise())


if __name__ == "__main__":
    main()
