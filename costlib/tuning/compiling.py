"""The networks of a run, compiled with its best programs and compared with what they were."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from costlib.hardware import Hardware
from costlib.measure.measurer import Measurer
from costlib.tuning.comparison import compare
from costlib.tuning.compiled import CompiledNetwork
from costlib.tuning.networks import NetworkSet
from costlib.tuning.result import NetworkResult


def compile_networks(
    networks: NetworkSet,
    latency_s: Sequence[float],
    out: Path,
    database: Any,
    hardware: Hardware,
    measurer: Measurer,
    seed: int,
    report: Callable[[str], None],
) -> list[NetworkResult]:
    """Compile the fastest version of each network and compare it with what it was before.

    That is: with the network as it was given, untuned, and with PyTorch.

    Parameters
    ----------
    networks
        The networks, perhaps in several layouts each.
    latency_s
        Best seconds of each task.
    out
        Where the libraries go.
    database
        The best programs, see :func:`costlib.tuning.database.write_database`.
    hardware, measurer
        What to compile for, and what runs it.
    seed
        Of the inputs.
    report
        Told what is being done.
    """
    compared = []
    untuned = measurer.server.folder / "untuned-network.so"
    sources = len(set(networks.source_of))
    for number in networks.fastest(latency_s):
        network, given = networks.networks[number], networks.given(number)
        library = out / library_name(networks.networks[given].name, sources)
        report(f"compiling {network.name}")
        CompiledNetwork.build(networks.prepared[given], hardware).save(untuned)
        CompiledNetwork.build(networks.prepared[number], hardware, database).save(library)
        report(f"comparing {network.name}")
        figures = compare(network, untuned, library, measurer, seed).model_dump()
        compared.append(NetworkResult(network=network.name, library=str(library), **figures))
    return compared


def library_name(network: str, count: int) -> str:
    """Return the file name of a compiled network; a run's only one is ``network.so``."""
    safe = "".join(c if c.isalnum() or c in "._@-" else "_" for c in network)
    return "network.so" if count == 1 else f"{safe}.so"
