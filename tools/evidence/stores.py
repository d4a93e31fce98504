"""The benchmarks that are measured piece by piece, and what their pieces come to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tools.evidence.directions_summary import summarise_directions
from tools.evidence.families import Family
from tools.evidence.generate_summary import summarise_generate
from tools.evidence.memory_summary import summarise_memory
from tools.evidence.peers_summary import summarise_peers
from tools.evidence.races import Race
from tools.evidence.search_summary import summarise_search
from tools.evidence.simulated import SimulatedSearch
from tools.evidence.simulated_summary import summarise_simulated
from tools.evidence.store import Store
from tools.evidence.variants_summary import summarise_variants

SEARCH = Store("search", Race)
GENERATE = Store("generate", Race)
VARIANTS = Store("variants", Race)
MEMORY = Store("memory", Race)
PEERS = Store("peers", Race)
SIMULATED = Store("surrogate", SimulatedSearch)
FAMILIES = Store("directions", Family)
STORES: dict[str, Store[Any]] = {
    store.benchmark: store
    for store in (SEARCH, GENERATE, VARIANTS, MEMORY, PEERS, SIMULATED, FAMILIES)
}
SUMMARIES: dict[str, Callable[[], dict[str, Any]]] = {
    "search": lambda: summarise_search(SEARCH.load()),
    "generate": lambda: summarise_generate(GENERATE.load(), SEARCH.load()),
    "variants": lambda: summarise_variants(VARIANTS.load()),
    "memory": lambda: summarise_memory(MEMORY.load()),
    "peers": lambda: summarise_peers(PEERS.load()),
    "surrogate": lambda: summarise_simulated(SIMULATED.load(), SEARCH.load()),
    "directions": lambda: summarise_directions(FAMILIES.load()),
}
"""What ``tools/results/<benchmark>.json`` holds of each."""
