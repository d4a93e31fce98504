"""A run starts from models that have seen hardware like its own."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from costlib.collecting.adapt import adapt
from costlib.collecting.collect import collect
from costlib.errors import DatasetError, InputError
from costlib.hardware import Hardware, find_hardware
from costlib.hub import Bundle
from costlib.hub.manifest import HardwareEntry
from costlib.training.batches import chosen_hardware
from costlib.tuning.bundles import bundle_for
from costlib.workloads import extract_tasks

ARM = find_hardware("aarch64")


def also_of(bundle: Bundle, *others: Hardware) -> Bundle:
    """The same bundle, as if it had been trained on other hardware, too."""
    entries = [HardwareEntry(hardware=one, canary=None) for one in others]
    manifest = bundle.manifest.model_copy(
        update={"hardware": (*bundle.manifest.hardware, *entries)}
    )
    return dataclasses.replace(bundle, manifest=manifest)


def test_the_shipped_one_is_for_such_hardware(hardware: Hardware, caplog: Any) -> None:
    found = bundle_for(None, hardware)
    assert found is not None and found.name == "cpu-gbdt"
    caplog.clear()
    assert bundle_for(None, ARM) is None
    assert caplog.messages == [
        "the shipped models have seen no aarch64, only x86-64: the search starts without any"
    ]
    assert bundle_for("none", hardware) is None


def test_one_that_is_asked_for_is_used_on_another_processor_and_says_so(
    bundle: Bundle, caplog: pytest.LogCaptureFixture
) -> None:
    assert bundle_for(bundle, ARM) is bundle
    assert "nor of any aarch64; `costlib adapt" in caplog.text
    caplog.clear()
    bundle_for(bundle, ARM.simulated())
    assert "nor of any aarch64" in caplog.text and "adapt" not in caplog.text


def test_one_of_cpus_is_refused_on_a_gpu(bundle: Bundle, tmp_path: Path) -> None:
    gpu = find_hardware("cuda:sm_90")
    with pytest.raises(InputError, match="was trained on x86-64 and says nothing of cuda"):
        bundle_for(bundle, gpu)
    assert bundle_for(also_of(bundle, gpu), gpu) is not None
    with pytest.raises(InputError, match="says nothing of cuda"):
        adapt(tmp_path / "adapted", minutes=1, bundle=bundle, hardware=gpu)
    with pytest.raises(InputError, match="says nothing of cuda"):
        collect(extract_tasks("softmax 16 32", gpu), tmp_path / "data", hardware=gpu, bundle=bundle)


def test_no_model_learns_programs_of_cpus_and_gpus_together(hardware: Hardware) -> None:
    gpu = find_hardware("cuda:sm_90")
    both = {one.hardware_id: one for one in (hardware, gpu)}

    class Mixed:
        path = Path("mixed")

        def hardware(self) -> dict[str, Hardware]:
            return both

    mixed: Any = Mixed()
    with pytest.raises(DatasetError, match="CPUs and of GPUs, which no model learns together"):
        chosen_hardware(mixed, None)
    assert list(chosen_hardware(mixed, [gpu.hardware_id])) == [gpu.hardware_id]


def test_programs_of_another_processor_are_no_priors(bundle: Bundle, hardware: Hardware) -> None:
    assert bundle.priors is not None and len(bundle.priors) > 0
    assert bundle.priors_for(hardware) is bundle.priors
    assert len(bundle.priors_for(ARM) or ()) == 0
    both = also_of(bundle, ARM)
    assert len(both.priors_for(hardware) or ()) == len(bundle.priors)
    assert len(both.priors_for(ARM) or ()) == 0
