"""Cost models: arrays (:mod:`costlib.features.batch`) in, scores out; neither TVM nor datasets.

- :mod:`~costlib.models.base`: what every cost model can do;
- :mod:`~costlib.models.gbdt`: gradient-boosted trees over pooled features, trained to rank, of
  lowered programs or of schedules;
- :mod:`~costlib.models.baselines.statement_gbdt`: Ansor's trees over single statements;
- :mod:`~costlib.models.baselines.mlp`: TenSet's neural network over statements;
- :mod:`~costlib.models.baselines.sequence`: a transformer over decisions, which needs no lowering;
- :mod:`~costlib.models.baselines.ensemble`: several of these, with an uncertainty;
- :mod:`~costlib.models.direction`: which mutation pays;
- :mod:`~costlib.models.residual`: a global model corrected by what a run measures.
"""

from __future__ import annotations

import importlib

from costlib.errors import UnknownNameError
from costlib.models.base import CostModel

_CLASSES = {
    "ensemble": "baselines.ensemble:EnsembleModel",
    "gbdt": "gbdt:GbdtModel",
    "gbdt-schedules": "gbdt:ScheduleGbdtModel",
    "gbdt-statements": "baselines.statement_gbdt:StatementGbdtModel",
    "mlp": "baselines.mlp:MlpModel",
    "sequence": "baselines.sequence:SequenceModel",
}
"""Module and class of each kind of model; imported when asked for."""


def model_class(kind: str) -> type[CostModel]:
    """Return the model class called ``kind``."""
    if kind not in _CLASSES:
        raise UnknownNameError("model", kind, _CLASSES)
    module, name = _CLASSES[kind].split(":")
    found: type[CostModel] = getattr(importlib.import_module(f"costlib.models.{module}"), name)
    return found
