"""Settings of a tuning run."""

from __future__ import annotations

from pathlib import Path

from costlib.frozen import FrozenStrict
from costlib.measure.config import MeasureConfig
from costlib.search.config import SearchConfig
from costlib.search.tasks.scheduler import Objective
from costlib.tuning.vendor import Vendor
from costlib.workloads.half_precision import HalfFormat
from costlib.workloads.layout_choice import Layouts
from costlib.workloads.small_weights import WeightFormat


class TuneConfig(FrozenStrict):
    """What a tuning run is to reach, and how.

    Attributes
    ----------
    objective, required_s
        What to make small, see :class:`costlib.search.tasks.scheduler.TaskScheduler`; seconds that
        each network is required to take at most, for the objective ``"requirement"``.
    min_gain
        Stop when another batch is expected to lower the objective by less than this share.
    layouts
        In which layouts networks are tuned, see :func:`costlib.workloads.in_layouts.in_layouts`.
        Of several whichever turns out fastest is compiled, and most of the trials go to that.
    weights
        Keep the weights of products in ``"int8"`` or ``"int4"``, see
        :mod:`costlib.workloads.small_weights`.
    dtype
        Multiply in ``"bfloat16"``, ``"float16"`` or ``"tf32"``, see
        :mod:`costlib.workloads.half_precision`.
    memory
        A folder that keeps the best programs of all runs that are given it; they are priors of the
        next.
    allow_different
        Tune a network even if it computes something else than its original.
    against
        Other engines that the tuned networks are compared with, beside PyTorch: names of
        :data:`costlib.tuning.engines.catalogue.ENGINES`.
    vendor
        ``"onednn"``: take oneDNN's kernel for a product wherever it is measured to be faster. The
        network then needs the library where it runs.
    measure
        Repeats, limits and racing.
    search
        How programs are proposed.
    """

    objective: Objective = "sum"
    required_s: tuple[float, ...] = ()
    min_gain: float = 0.0
    layouts: Layouts = "channels-last"
    weights: WeightFormat | None = None
    dtype: HalfFormat | None = None
    memory: Path | None = None
    allow_different: bool = False
    against: tuple[str, ...] = ()
    vendor: Vendor | None = None
    measure: MeasureConfig = MeasureConfig()
    search: SearchConfig = SearchConfig()

    @property
    def fixed_for(self) -> str | None:
        """A setting that only networks of fixed shapes can have, if there is one."""
        settings = {
            "--layouts all": self.layouts == "all",
            "the objective 'requirement'": self.objective == "requirement",
        }
        return next((name for name, is_set in settings.items() if is_set), None)
