from __future__ import annotations

from costlib.features import tiled_programs
from costlib.features.columns import CONTEXT, GPU, NESTS, ORIGINAL, TASK, columns_of
from costlib.features.gpu_features import gpu_features
from costlib.features.nest_features import nest_features
from costlib.features.schedule import CONTEXT_FEATURES
from costlib.hardware import Hardware
from costlib.identity import content_id
from costlib.workloads import Task


def test_what_bundles_without_names_were_trained_with_never_changes() -> None:
    ids = {view: content_id(names) for view, names in ORIGINAL.items()}
    assert ids == {"statements": "ec032e7653e77e64", "schedule": "639e491b4144d89b"}


def test_every_column_has_a_name_of_its_own(matmul: Task, hardware: Hardware) -> None:
    assert tuple(nest_features(matmul.mod, hardware)) == NESTS
    assert CONTEXT["schedule"][-len(tiled_programs.COLUMNS) :] == tiled_programs.COLUMNS
    assert len(CONTEXT["schedule"]) == len(TASK) + CONTEXT_FEATURES
    for view, names in CONTEXT.items():
        assert len(set(names)) == len(names)
        assert set(ORIGINAL[view]) <= set(names)


def test_programs_of_a_gpu_have_more(matmul: Task) -> None:
    told = gpu_features(matmul.mod, Hardware.cuda("sm_90"))
    assert tuple(f"gpu.{name}" for name in told) == GPU["statements"]
    for view, names in CONTEXT.items():
        assert columns_of(view, "cpu") == names
        assert columns_of(view, "cuda") == names + GPU[view]
