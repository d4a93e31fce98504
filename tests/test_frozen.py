from __future__ import annotations

from costlib.hardware import Hardware


def test_a_copy_has_an_id_of_its_own(hardware: Hardware) -> None:
    known = hardware.hardware_id
    other = hardware.model_copy(update={"model": "another"})
    assert other.hardware_id != known
    assert other.hardware_id.startswith("another-")
    assert hardware.model_copy().hardware_id == known
