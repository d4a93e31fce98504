"""costlib: offline-trained cost models and transfer learning for Apache TVM.

The whole path in a few lines::

    import costlib

    bundle = costlib.load_pretrained("pretrained/cpu-gbdt")
    result = costlib.tune("bert_tiny", bundle=bundle, trials=64, out="runs/bert_tiny")

Everything is imported on first use, so ``import costlib`` itself costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "1.0.0"

_EXPORTS = {
    "Builder": "costlib.metaschedule",
    "Bundle": "costlib.hub",
    "CollectionPlan": "costlib.collecting.plan",
    "CompiledNetwork": "costlib.tuning.compiled",
    "CostlibError": "costlib.errors",
    "Dataset": "costlib.data.dataset",
    "EvolutionConfig": "costlib.search.evolution.search",
    "GeneratorConfig": "costlib.generator.transformer",
    "GradientScheduler": "costlib.metaschedule",
    "Hardware": "costlib.hardware",
    "InputSpec": "costlib.workloads.network",
    "MeasureConfig": "costlib.measure.config",
    "Mix": "costlib.collecting.plan",
    "Network": "costlib.workloads",
    "PlanningConfig": "costlib.search.tasks.planning",
    "PretrainedCostModel": "costlib.metaschedule",
    "RandomConfig": "costlib.search.random_search",
    "RelativesConfig": "costlib.search.tasks.relatives",
    "RunModelConfig": "costlib.search.run_model",
    "Runner": "costlib.metaschedule",
    "SearchConfig": "costlib.search.config",
    "SearchStrategy": "costlib.metaschedule",
    "Task": "costlib.workloads.task",
    "TuneConfig": "costlib.tuning.config",
    "TuneResult": "costlib.tuning.result",
    "Check": "costlib.tuning.check",
    "adapt": "costlib.collecting.adapt",
    "check": "costlib.tuning.check",
    "collect": "costlib.collecting.collect",
    "collect_plan": "costlib.collecting.planned",
    "evaluate": "costlib.hub.evaluate",
    "extract_tasks": "costlib.workloads",
    "fine_tune": "costlib.hub.fine_tuning",
    "generate": "costlib.generator.generate",
    "load_network": "costlib.workloads",
    "load_plan": "costlib.collecting.plan",
    "load_pretrained": "costlib.hub",
    "refine": "costlib.collecting.refine",
    "train": "costlib.hub.train",
    "tune": "costlib.tuning.tune",
}

__all__ = sorted([*_EXPORTS, "__version__"])

if TYPE_CHECKING:
    from costlib.collecting.adapt import adapt as adapt
    from costlib.collecting.collect import collect as collect
    from costlib.collecting.plan import CollectionPlan as CollectionPlan
    from costlib.collecting.plan import Mix as Mix
    from costlib.collecting.plan import load_plan as load_plan
    from costlib.collecting.planned import collect_plan as collect_plan
    from costlib.collecting.refine import refine as refine
    from costlib.data.dataset import Dataset as Dataset
    from costlib.errors import CostlibError as CostlibError
    from costlib.generator.generate import generate as generate
    from costlib.generator.transformer import GeneratorConfig as GeneratorConfig
    from costlib.hardware import Hardware as Hardware
    from costlib.hub import Bundle as Bundle
    from costlib.hub import load_pretrained as load_pretrained
    from costlib.hub.evaluate import evaluate as evaluate
    from costlib.hub.fine_tuning import fine_tune as fine_tune
    from costlib.hub.train import train as train
    from costlib.measure.config import MeasureConfig as MeasureConfig
    from costlib.metaschedule import Builder as Builder
    from costlib.metaschedule import GradientScheduler as GradientScheduler
    from costlib.metaschedule import PretrainedCostModel as PretrainedCostModel
    from costlib.metaschedule import Runner as Runner
    from costlib.metaschedule import SearchStrategy as SearchStrategy
    from costlib.search.config import SearchConfig as SearchConfig
    from costlib.search.evolution.search import EvolutionConfig as EvolutionConfig
    from costlib.search.random_search import RandomConfig as RandomConfig
    from costlib.search.run_model import RunModelConfig as RunModelConfig
    from costlib.search.tasks.planning import PlanningConfig as PlanningConfig
    from costlib.search.tasks.relatives import RelativesConfig as RelativesConfig
    from costlib.tuning.check import Check as Check
    from costlib.tuning.check import check as check
    from costlib.tuning.compiled import CompiledNetwork as CompiledNetwork
    from costlib.tuning.config import TuneConfig as TuneConfig
    from costlib.tuning.result import TuneResult as TuneResult
    from costlib.tuning.tune import tune as tune
    from costlib.workloads import Network as Network
    from costlib.workloads import extract_tasks as extract_tasks
    from costlib.workloads import load_network as load_network
    from costlib.workloads.network import InputSpec as InputSpec
    from costlib.workloads.task import Task as Task


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'costlib' has no attribute '{name}'")
    value = getattr(importlib.import_module(_EXPORTS[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
