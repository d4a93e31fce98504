"""A stand-in for the driver's own program."""

from __future__ import annotations

from pathlib import Path


def fake_smi(folder: Path, script: str) -> None:
    """Put an ``nvidia-smi`` into a folder that runs these lines of a shell."""
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
