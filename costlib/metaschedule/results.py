"""What a runner of MetaSchedule reports."""

from __future__ import annotations

from typing import Any

import numpy as np


def latency_s(result: Any) -> float | None:
    """Return the latency of a ``RunnerResult`` in seconds, ``None`` if the program failed."""
    if result.run_secs is None or result.error_msg is not None:
        return None
    return float(np.mean([float(s) for s in result.run_secs]))
