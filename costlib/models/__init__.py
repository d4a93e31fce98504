"""Cost models: arrays (:mod:`costlib.features.batch`) in, scores out; neither TVM nor datasets.

- :mod:`~costlib.models.base`: what every cost model can do;
- :mod:`~costlib.models.gbdt`: gradient-boosted trees.
"""

from __future__ import annotations

from costlib.errors import UnknownNameError
from costlib.models.base import CostModel


def model_class(kind: str) -> type[CostModel]:
    """Return the model class called ``kind``."""
    from costlib.models.gbdt import GbdtModel

    classes: dict[str, type[CostModel]] = {GbdtModel.kind: GbdtModel}
    if kind not in classes:
        raise UnknownNameError("model", kind, classes)
    return classes[kind]
