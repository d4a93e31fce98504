from __future__ import annotations

from importlib import metadata

import pytest

from costlib.errors import EnvironmentMismatchError
from costlib.tvm_compat import versions


def pretend(monkeypatch: pytest.MonkeyPatch, **installed: str | None) -> None:
    def version(package: str) -> str:
        found = installed.get(package.replace("-", "_"), "0.27.0")
        if found is None:
            raise metadata.PackageNotFoundError(package)
        return found

    monkeypatch.setattr(versions.metadata, "version", version)


@pytest.mark.parametrize("installed", ["0.26.0", "0.28.0.dev3", "1.0"])
def test_another_tvm(monkeypatch: pytest.MonkeyPatch, installed: str) -> None:
    pretend(monkeypatch, apache_tvm=installed)
    with pytest.raises(EnvironmentMismatchError, match=f"apache-tvm {installed} .*pip install"):
        versions.check_versions()


@pytest.mark.parametrize("installed", ["0.1.15.post1", "0.1.15", "0.2.0"])
def test_tvm_ffi_that_crashes(monkeypatch: pytest.MonkeyPatch, installed: str) -> None:
    pretend(monkeypatch, apache_tvm_ffi=installed)
    with pytest.raises(EnvironmentMismatchError, match="crashes; run: pip install"):
        versions.check_versions()


def test_no_tvm(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, apache_tvm=None)
    with pytest.raises(EnvironmentMismatchError, match="apache-tvm is not installed"):
        versions.check_versions()


@pytest.mark.parametrize("ffi", ["0.1.14.post1", "0.1.9"])
def test_tested_versions(monkeypatch: pytest.MonkeyPatch, ffi: str) -> None:
    pretend(monkeypatch, apache_tvm="0.27.0.post1", apache_tvm_ffi=ffi)
    versions.check_versions()


def test_the_pin_of_tvm_ffi_is_still_needed() -> None:
    """Fails once TVM itself asks for a tvm-ffi below the one that crashes."""
    requirements = [r for r in metadata.requires("apache-tvm") or [] if "tvm-ffi" in r]
    assert requirements, "TVM does not need tvm-ffi any more: drop the pin"
    assert all("<0.1.15" not in requirement for requirement in requirements), "drop the pin"
