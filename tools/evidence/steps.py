"""What ``python -m tools.evidence`` runs, step by step.

Minutes are estimates for two quiet cores of AMD Genoa with AVX-512, made of the seconds that the
committed results hold: active seconds of races, with a tenth for second looks and for starting;
seconds of tuning, training, loading, measuring. What was only timed on another machine is scaled as
the ablation is, which was raced on both. Steps without times (coverage, soak) last as long as their
arguments say; those of the quick run were timed.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import NamedTuple

from tools.evidence.labels import is_labelled_here
from tools.evidence.protocol import QUICK

WORK = "{work}"
"""Stands for the folder of a run in arguments."""

PEER = "COSTLIB_ANSOR"
"""Names the interpreter of a TVM that still has Ansor."""


class Shown(NamedTuple):
    """Where the provenance has a step: the benchmark, what of it in words, and its page."""

    benchmark: str
    part: str
    page: str


@dataclass(frozen=True)
class Step:
    """A process of its own.

    Attributes
    ----------
    name
        What it is called.
    module, full, quick
        What is run, and its arguments in a full and in a quick run; ``None`` if it has no part in
        that.
    minutes, quick_minutes
        How long either lasts, about.
    result
        The result file that it writes, without a suffix; ``""`` if others need what it makes.
    shown
        See :class:`Shown`.
    after
        Steps that it builds on.
    is_packed
        Whether it leaves pieces that have to be packed.
    packages
        What it imports that is an extra.
    has_bundle
        Whether the shipped bundle takes part.
    """

    name: str
    module: str
    full: str | None
    quick: str | None
    minutes: float = 0
    quick_minutes: float = 0
    result: str = ""
    shown: Shown | None = None
    after: tuple[str, ...] = ()
    is_packed: bool = False
    packages: tuple[str, ...] = ()
    has_bundle: bool = False

    @property
    def arguments(self) -> str | None:
        """Those of this run."""
        return self.quick if QUICK else self.full

    @property
    def estimate(self) -> float:
        """Minutes of this run."""
        return self.quick_minutes if QUICK else self.minutes

    @property
    def command(self) -> str:
        """What is run, as a provenance has it."""
        return f"{self.module} {self.arguments}".strip()

    def words(self) -> list[str]:
        """Return the command as words."""
        return [self.module, *shlex.split(self.arguments or "")]

    @property
    def seeds(self) -> tuple[int, ...]:
        """Those that its arguments name."""
        words = self.words()
        found: list[int] = []
        for place, word in enumerate(words):
            if word in ("--seed", "--seeds"):
                for number in words[place + 1 :]:
                    if not number.isdigit():
                        break
                    found.append(int(number))
        return tuple(found)

    def hindrance(self, pending: Iterable[str]) -> str | None:
        """Return why it cannot run while some steps are not complete; ``None`` if it can."""
        if missing := [package for package in self.packages if find_spec(package) is None]:
            return f"{' and '.join(missing)} not installed: pip install -e '.[bench,engines]'"
        if waiting := set(self.after).intersection(pending):
            return f"builds on {' and '.join(sorted(waiting))}"
        if self.name == "ceiling" and not is_labelled_here():
            return "the held-out tasks were measured on another processor"
        if self.name == "peers" and not os.environ.get(PEER):
            return f"no interpreter with tvm.auto_scheduler is given in {PEER}"
        return None


def ordered(steps: Sequence[Step]) -> list[Step]:
    """Return the steps of this run, each after those it builds on, otherwise the cheapest first."""
    left = sorted((s for s in steps if s.arguments is not None), key=lambda step: step.estimate)
    found: list[Step] = []
    while left:
        names = {step.name for step in left}
        ready = next(step for step in left if not names.intersection(step.after))
        found.append(ready)
        left.remove(ready)
    return found


_SAMPLE = f"{WORK}/zoo-sample"
_FEW_RANKERS = "--models random 'TenSet GBDT' gbdt"
_RANKERS = "--models random 'MetaSchedule XGBModel' 'TenSet GBDT' 'TenSet MLP' TLP gbdt"

STEPS = (
    Step(
        "sample",
        "costlib",
        None,
        f"dataset sample datasets/zoo --out {_SAMPLE} --programs-per-task 16 --tasks 20",
        quick_minutes=0.3,
    ),
    Step(
        "vector_math",
        "tools.benchmarks.vector_math",
        "",
        "--turns 1",
        1,
        0.3,
        "vector_math",
        Shown("vector_math", "one core", "vector-math"),
    ),
    Step(
        "data",
        "tools.benchmarks.data",
        f"--source datasets/zoo --work {WORK}/data --programs 100000 1000000",
        f"--source {_SAMPLE} --work {WORK}/data --programs 20000 40000",
        5,
        1.5,
        "data",
        Shown("data", "synthetic datasets", "scale"),
        after=("sample",),
    ),
    Step(
        "measure",
        "tools.benchmarks.measure",
        "--seed 0",
        "--seed 0 --batch 8 --pass-programs 3",
        5,
        1.2,
        "measure",
        Shown("measure", "throughput and agreement", "measuring"),
    ),
    Step(
        "scale",
        "tools.benchmarks.scale",
        f"--work {WORK}/scale",
        f"--work {WORK}/scale --tasks 4 8",
        6,
        1.5,
        "scale",
        Shown("scale", "sizing", "scale"),
        after=("data",),
    ),
    Step(
        "fuzz",
        "tools.fuzz",
        f"--work {WORK}/fuzz --inputs 500",
        f"--work {WORK}/fuzz --inputs 20 --only plan messages result steps sqlite metaschedule",
        8,
        0.5,
        "fuzz",
        Shown("fuzz", "damaged files", "fuzz"),
    ),
    Step(
        "cache_state",
        "tools.benchmarks.cache_state",
        f"bert_small resnet_18 --runs {WORK}/cache_state --seeds 0",
        f"bert_small --runs {WORK}/cache_state --seeds 0 --per-task 1",
        8,
        1.5,
        "cache_state",
        Shown("cache_state", "weights from memory", "measuring"),
        has_bundle=True,
    ),
    Step(
        "coverage",
        "tools.evidence.coverage",
        "--minutes 5",
        "--minutes 0.5",
        5,
        1,
        "coverage",
        Shown("coverage", "architectures", "coverage"),
    ),
    Step(
        "soak",
        "tools.evidence.soak",
        "--minutes 5 --seed 0",
        "--minutes 0.5 --seed 0",
        5,
        1,
        "soak",
        Shown("soak", "faults of the machine", "soak"),
    ),
    Step(
        "shapes",
        "tools.benchmarks.shapes",
        f"bert_mini --dim sequence=16:128 --alone 3 --runs {WORK}/shapes",
        f"bert_mini --dim sequence=16:32 --shapes 2 --alone 1 --per-task 1 --runs {WORK}/shapes",
        8,
        1.5,
        "shapes",
        Shown("shapes", "ranges", "shapes"),
        has_bundle=True,
    ),
    Step(
        "precision",
        "tools.benchmarks.precision",
        f"--networks bert_mini 'dense 512 1024 1024' --runs {WORK}/precision",
        f"--networks 'dense 128 768 768' --per-task 2 --runs {WORK}/precision",
        9,
        1.5,
        "precision",
        Shown("precision", "precisions", "precision"),
        packages=("onnxruntime", "openvino"),
        has_bundle=True,
    ),
    Step(
        "model_speed",
        "tools.benchmarks.model_speed",
        "",
        f"--programs 200 --dataset {_SAMPLE}",
        10,
        2,
        "model_speed",
        Shown("model_speed", "speed of models", "ranking"),
        packages=("xgboost",),
        has_bundle=True,
        after=("sample",),
    ),
    Step(
        "transfer",
        "tools.benchmarks.transfer",
        "--seed 0",
        f"--seed 0 --dataset {_SAMPLE}",
        6,
        0.4,
        "transfer",
        Shown("transfer", "real machines", "transfer"),
        after=("sample",),
    ),
    Step(
        "ceiling",
        "tools.benchmarks.ceiling",
        f"--work {WORK}/ceiling",
        f"--tasks 2 --looks 2 --work {WORK}/ceiling",
        14,
        0.4,
        "ceiling",
        Shown("ceiling", "the ceiling", "ranking"),
    ),
    Step(
        "engines",
        "tools.benchmarks.engines",
        "--networks bert_mini mobilenet_v1 gpt2_mini resnet_18 --batches 1 --threads 2 "
        f"--runs {WORK}/engines",
        f"--networks bert_mini --batches 1 --threads 2 --per-task 1 --runs {WORK}/engines",
        13,
        2,
        "engines",
        Shown("engines", "networks", "engines"),
        packages=("onnxruntime", "openvino"),
        has_bundle=True,
    ),
    Step(
        "leaderboard",
        "tools.benchmarks.leaderboard",
        f"--seeds 0 {_RANKERS}",
        f"--seeds 0 --dataset {_SAMPLE} {_FEW_RANKERS}",
        7,
        0.5,
        "leaderboard",
        Shown("leaderboard", "models of the literature", "ranking"),
        packages=("xgboost",),
        after=("sample",),
    ),
    Step(
        "diffusion",
        "tools.benchmarks.search",
        "diffusion --seeds 0 --only bert_tiny",
        "diffusion --seeds 0 --only bert_tiny",
        4,
        1.5,
        "search",
        Shown("ablation", "diffusion", "ablation"),
        is_packed=True,
        has_bundle=True,
    ),
    Step(
        "cold",
        "tools.benchmarks.search",
        "cold --seeds 0 --only bert_tiny",
        "cold --seeds 0 --only bert_tiny",
        14,
        2.5,
        "search",
        Shown("ablation", "without a bundle", "ablation"),
        is_packed=True,
        has_bundle=True,
    ),
    Step(
        "ablation",
        "tools.benchmarks.search",
        "ablation --seeds 0 --only bert_tiny",
        "ablation --seeds 0 --only bert_tiny",
        16,
        2.5,
        "search",
        Shown("ablation", "with a bundle", "ablation"),
        is_packed=True,
        has_bundle=True,
    ),
    Step(
        "surrogate",
        "tools.benchmarks.surrogate",
        "proof --seeds 0 1",
        "proof plain cold --seeds 0 --trials 8",
        14,
        1,
        "surrogate",
        Shown("surrogate", "versions that were raced, simulated", "surrogate"),
        after=("ablation",),
        is_packed=True,
        has_bundle=True,
    ),
    Step(
        "directions",
        "tools.benchmarks.directions",
        "--device surrogate --parents 60 --seed 0",
        "--device surrogate --parents 2 --seed 0",
        5,
        0.8,
        "directions",
        Shown("directions", "families, simulated", "directions"),
        is_packed=True,
    ),
    Step(
        "long",
        "tools.benchmarks.search",
        "long --seeds 0",
        "long --seeds 0 --only bert_tiny",
        51,
        1.5,
        "search",
        Shown("search", "long races", "search"),
        is_packed=True,
        packages=("xgboost",),
        has_bundle=True,
    ),
    Step(
        "peers",
        "tools.benchmarks.peers",
        "heavy --seeds 0",
        "heavy --seeds 0 --only bert_tiny",
        113,
        4,
        result="peers",
        shown=Shown("peers", "single tasks", "peers"),
        is_packed=True,
        has_bundle=True,
    ),
    Step(
        "heavy",
        "tools.benchmarks.search",
        "heavy --seeds 0 1 2",
        "heavy --seeds 0 --only bert_tiny",
        88,
        1.5,
        "search",
        Shown("search", "single tasks", "search"),
        is_packed=True,
        packages=("xgboost",),
        has_bundle=True,
    ),
    Step(
        "networks",
        "tools.benchmarks.search",
        "networks --seeds 0 1 2 --no-generated",
        "networks --seeds 0 --only bert_tiny --no-generated",
        297,
        1.5,
        "search",
        Shown("search", "whole networks", "search"),
        is_packed=True,
        packages=("xgboost",),
        has_bundle=True,
    ),
)
