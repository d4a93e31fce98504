"""The commands by name, each imported when it is asked for: a call of ``costlib`` wants one."""

from __future__ import annotations

from collections import UserDict
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

_COMMANDS = {
    "doctor": "machine.doctor",
    "hardware": "machine.hardware",
    "tasks": "tasks.tasks",
    "check": "check.check",
    "collect": "collect.collect",
    "serve": "machine.serve",
    "import": "logs.import_",
    "export": "logs.export",
    "train": "train.train",
    "adapt": "adapt.adapt",
    "evaluate": "train.evaluate",
    "models": "models.models",
    "publish": "models.publish",
    "generate": "generate.generate",
    "refine": "collect.refine",
    "tune": "tune.tune",
    "profile": "profile.profile",
    "report": "report.report",
    "dashboard": "dashboard.dashboard",
    "dataset": "dataset.app",
    "cache": "cache.app",
}
"""The name of a command -> the module of this package that has it, and what it is called there."""


class Commands(TyperGroup):
    """The group of all commands."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Imported({**_COMMANDS, **self.commands})


class _Imported(UserDict[str, Any]):
    """Commands by name; a text stands for one that was not asked for yet."""

    def __getitem__(self, name: str) -> Any:
        if isinstance(found := self.data[name], str):
            found = self.data[name] = _made(name, found)
        return found


def _made(name: str, place: str) -> Any:
    module, _, attribute = place.partition(".")
    found = getattr(import_module(f"costlib.cli.{module}"), attribute)
    holder = typer.Typer(rich_markup_mode="markdown", pretty_exceptions_enable=False)
    if isinstance(found, typer.Typer):
        holder.add_typer(found, name=name)
    else:
        holder.command(name)(found)
    return typer.main.get_group(holder).commands[name]
