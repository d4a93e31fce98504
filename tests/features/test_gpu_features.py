"""Features of GPU programs, lowered and by their decisions alone."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from costlib.features.columns import KERNELS
from costlib.features.gpu_features import bank_conflicts, gpu_features, sectors
from costlib.features.nest import LANES, Access
from costlib.features.schedule import CONTEXT_FEATURES
from costlib.features.task_encoder import TaskEncoder
from costlib.features.version import FEATURE_VERSION, feature_version
from costlib.hardware import Hardware
from costlib.space.design_space import DesignSpace
from costlib.workloads import extract_tasks

GPU = Hardware.cuda("sm_90", num_cores=132)


def access(stride: int, element_bytes: int = 4) -> Access:
    """An access of a warp whose threads are ``stride`` elements apart."""
    none, steps = np.ones(1), np.zeros((1, 0), "int64")
    lanes = stride * np.arange(LANES)
    scope = "shared"
    return Access(none, none, lanes[:0], steps, (4096,), element_bytes, False, scope, lanes)


@pytest.mark.parametrize(("stride", "ways"), [(0, 1), (1, 1), (2, 2), (8, 8), (32, 32), (33, 1)])
def test_bank_conflicts(stride: int, ways: int) -> None:
    assert bank_conflicts(access(stride)) == ways


@pytest.mark.parametrize(
    ("stride", "lanes", "fetched"), [(0, 1, 1), (1, 1, 4), (4, 4, 16), (2, 1, 8), (64, 1, 32)]
)
def test_sectors_of_a_warp(stride: int, lanes: int, fetched: int) -> None:
    assert sectors(access(stride), lanes) == fetched


@pytest.mark.parametrize("operator", ["matmul 128 128 128", "conv2d 1 16 28 28 16 3 pad=1"])
def test_decisions_tell_what_the_lowered_program_does(operator: str) -> None:
    task = extract_tasks(operator, GPU)[0]
    space = DesignSpace(task)
    drawn = [pair for pair in itertools.islice(space.sample(0), 40) if pair[1] is not None]
    lowered = [gpu_features(schedule.mod, GPU) for _, schedule in drawn]
    encoder = TaskEncoder.of_space(space, GPU)
    batch = encoder.schedules([program for program, _ in drawn])
    assert batch.context.shape[1] == len(encoder.context) + CONTEXT_FEATURES + len(KERNELS)
    assert np.isfinite(batch.context[:, len(encoder.context) :]).all()
    table = batch.context[:, -len(KERNELS) :]
    for name in ("threads", "threads.idle", "blocks", "virtual_threads", "registers", "occupancy"):
        expected = [columns[name] for columns in lowered]
        assert np.allclose(table[:, KERNELS.index(name)], expected, atol=1e-4), name
        assert len(np.unique(expected)) > 1 or name == "threads.idle"


def test_what_describes_cpus_has_not_changed() -> None:
    assert feature_version("cpu") == FEATURE_VERSION != feature_version("cuda")
    here = Hardware.local()
    task = extract_tasks("matmul 16 16 16", here)[0]
    space = DesignSpace(task)
    encoder = TaskEncoder.of_space(space, here)
    program = next(space.examples(0))
    context = encoder.schedules([program]).context
    assert context.shape[1] == len(encoder.context) + CONTEXT_FEATURES
