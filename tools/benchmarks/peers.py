"""costlib's search against Ansor and Bayesian Code Diffusion themselves, on the held-out networks.

    python -m tools.benchmarks.peers heavy --ansor PYTHON    # the two heaviest tasks of each
    python -m tools.benchmarks.peers long --ansor PYTHON     # the heaviest, 1,000 trials for Ansor
    python -m tools.benchmarks.peers networks --ansor PYTHON --diffusion PYTHON

``PYTHON`` is an interpreter with a TVM that still has ``auto_scheduler`` (0.15, say): Ansor's, or
that of the authors of Bayesian Code Diffusion, who publish theirs. A variable of the environment in
front is part of it, with absolute paths: ``"PYTHONPATH=/.../python /usr/bin/python3"``. All sides
tune the same tensor expressions for the same processor, or, where the LLVM of a peer is older, for
the most similar one that it knows; with the same repeats, and take turns
(:mod:`tools.benchmarks.race`). Cases are kept in ``tools/results/raw/peers`` as those of
:mod:`tools.benchmarks.search` are.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from costlib.errors import EnvironmentMismatchError
from costlib.hardware import Hardware
from costlib.hub.bundle import Bundle
from costlib.measure.measurer import Measurer
from costlib.processor import llvm_features, runs_here
from costlib.search.config import SearchConfig
from costlib.workloads.task import Task
from tools.benchmarks.cases import Case, run_cases
from tools.benchmarks.held_out import NETWORKS, heaviest, tunable
from tools.benchmarks.race import Arm, Turns
from tools.benchmarks.sides import ours
from tools.benchmarks.te_of_task import tensor_expressions
from tools.evidence.protocol import HEAVY_TRIALS, LONG_TRIALS, NETWORK_TRIALS, STOCK_BATCH
from tools.evidence.stores import PEERS

_PROCESS = Path(__file__).with_name("peer_process.py")
_SCHEDULER: dict[str, dict[str, Any]] = {"ansor": {}, "diffusion": {"group_type": "sketch"}}
"""What the task scheduler of each is told."""

Pythons = Mapping[str, str]


def main() -> None:
    """Race the cases of a part that are missing."""
    parts: dict[str, Callable[..., Iterator[Case]]] = {
        "heavy": partial(_single, "heavy", 2, HEAVY_TRIALS),
        "long": partial(_single, "long", 1, LONG_TRIALS),
        "networks": _whole,
    }
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=parts)
    for name in _SCHEDULER:
        known = os.environ.get(f"COSTLIB_{name.upper()}")
        words = f"an interpreter that has it; otherwise COSTLIB_{name.upper()} names one"
        parser.add_argument(f"--{name}", metavar="PYTHON", default=known, help=words)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--only", nargs="+", choices=NETWORKS, default=NETWORKS)
    parser.add_argument("--seeds", type=int, nargs="+", default=(0,))
    parser.add_argument("--bundle", default="cpu-gbdt")
    given = parser.parse_args()
    pythons = {name: vars(given)[name] for name in _SCHEDULER if vars(given)[name]}
    if not pythons:
        parser.error("whom against? give --ansor, --diffusion or both")
    for python in pythons.values():
        try:
            Peer(python).close()
        except EnvironmentMismatchError as error:
            parser.exit(1, f"{error}\n")
    cases = partial(parts[given.part], pythons=pythons, only=given.only, seeds=given.seeds)
    run_cases(PEERS, cases, given.bundle, given.minutes)


def _single(
    kind: str,
    count: int,
    trials: int,
    hardware: Hardware,
    *,
    pythons: Pythons,
    only: Sequence[str],
    seeds: Sequence[int],
) -> Iterator[Case]:
    tasks = {network: heaviest(network, hardware, count) for network in only}
    for seed in seeds:
        for network in only:
            for rank, task in enumerate(tasks[network]):
                arms = partial(_arms, [task], trials, HEAVY_TRIALS, seed, pythons)
                yield Case(kind, f"{network}-{rank}", seed, [task], arms)


def _whole(
    hardware: Hardware, *, pythons: Pythons, only: Sequence[str], seeds: Sequence[int]
) -> Iterator[Case]:
    for network in only:
        tasks = tunable(network, hardware)
        trials = NETWORK_TRIALS * len(tasks)
        for seed in seeds:
            arms = partial(_arms, tasks, trials, trials, seed, pythons)
            yield Case("network", network, seed, tasks, arms)


def _arms(
    tasks: Sequence[Task],
    their_trials: int,
    our_trials: int,
    seed: int,
    pythons: Pythons,
    measurer: Measurer,
    bundle: Bundle,
) -> list[Arm]:
    return [
        *(
            peer(name, python, tasks, their_trials, seed, measurer)
            for name, python in pythons.items()
        ),
        ours("costlib", tasks, our_trials, seed, measurer, bundle, SearchConfig()),
    ]


class Peer:
    """A process that searches elsewhere.

    Parameters
    ----------
    python
        The command that starts an interpreter, variables of the environment in front.

    Attributes
    ----------
    version
        Of its TVM.
    processors
        That its LLVM can generate code for.

    Raises
    ------
    EnvironmentMismatchError
        It does not start, or has no ``auto_scheduler``.
    """

    def __init__(self, python: str) -> None:
        # Their task scheduler writes files to where it runs.
        self._folder = tempfile.TemporaryDirectory()
        command = ["env", *shlex.split(python), str(_PROCESS), self._folder.name]
        self._said = tempfile.TemporaryFile("w+")  # noqa: SIM115 - Until it is closed.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, text=True
        )
        try:
            first = self.read()
            self.version = str(first["version"])
            self.processors = frozenset(map(str, first["processors"]))
        except EnvironmentMismatchError:
            raise EnvironmentMismatchError(
                f"'{python}' has no TVM with auto_scheduler: `{python} -c 'import "
                "tvm.auto_scheduler'` says why"
            ) from None

    def write(self, message: Any) -> None:
        """Send a message."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def read(self) -> dict[str, Any]:
        """Return the next message.

        Raises
        ------
        EnvironmentMismatchError
            The process has ended.
        """
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            code = self._process.wait()
            self._said.seek(0)
            last = self._said.read().strip().rpartition("\n")[2]
            raise EnvironmentMismatchError(f"the peer ended with {code}: {last}")
        message: dict[str, Any] = json.loads(line)
        return message

    def look_again(self, trial: int) -> list[float]:
        """Return the seconds that each repeat of a program takes that was the best for a while."""
        self.write(trial)
        return [float(one) for one in self.read()["run_secs"]]

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()
        self._said.close()
        self._folder.cleanup()


def peer(
    name: str, python: str, tasks: Sequence[Task], trials: int, seed: int, measurer: Measurer
) -> Arm:
    """Ansor as it comes, or what somebody made of it."""
    process, config = Peer(python), measurer.config
    target = {key: measurer.hardware.target[key] for key in ("kind", "mcpu", "num-cores")}
    target["mcpu"] = nearest_processor(target["mcpu"], process.processors)
    job = {
        "tasks": [
            {"name": task.name, "weight": task.weight, **tensor_expressions(task)} for task in tasks
        ],
        "target": target,
        "trials": trials,
        "batch": min(STOCK_BATCH, trials // len(tasks)),
        "seed": seed,
        "num_cores": measurer.hardware.num_cores,
        "build_secs": config.build_timeout_secs,
        "run_secs": config.run_timeout_secs,
        "repeats": config.repeats,
        "repeat_secs": config.repeat_secs,
        "scheduler": _SCHEDULER[name],
    }

    def run(arm: Arm, turns: Turns) -> None:
        process.write(job)
        nothing = SimpleNamespace(mod=None)
        while "done" not in (message := process.read()):
            arm.measure_s += message["measure_s"]
            latencies = message["latency_s"]
            arm.note(message["task"], latencies, [nothing] * len(latencies))
            arm.end(turns)
            arm.begin(turns)
            process.write("go on")

    settings = {"tvm": process.version, "mcpu": target["mcpu"], **_SCHEDULER[name]}
    return Arm(name, run, settings, elsewhere=process)


def nearest_processor(mcpu: str, known: Set[str]) -> str:
    """Return a processor, or of those that are known and run here the one that is most like it.

    Raises
    ------
    EnvironmentMismatchError
        None of them runs here.
    """
    if mcpu in known:
        return mcpu
    features = llvm_features(mcpu)
    shared = {name: len(llvm_features(name) & features) for name in known if runs_here(name)}
    if not shared:
        raise EnvironmentMismatchError(f"the peer's LLVM knows no processor that is like {mcpu}")
    return max(sorted(shared), key=shared.__getitem__)


if __name__ == "__main__":
    main()
