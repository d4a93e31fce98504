"""What the site makes of docstrings: Sphinx's roles become links, settings become parameters.

An extension of griffe, which reads the package for mkdocstrings; ``mkdocs.yml`` names it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import griffe

_ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod):`(~?)([\w.]+)`")

_LITERAL = re.compile(r"::$", re.M)
"""How a paragraph ends that indented code follows; Markdown needs no second colon."""

_TABLE = re.compile(r"^(?:Attributes|Parameters)\n-+\n.*?(?=^\w+\n-+\n|\Z)", re.M | re.S)

_TOGETHER = re.compile(r"^(\w+)((?:, \w+)+)\n((?: +.*(?:\n|\Z))+)", re.M)
"""What one text describes; griffe would give all of them the first one's type and default."""

_SETTINGS = ("Config", "Mix", "Plan")
"""How the names of pydantic models end that people write themselves."""

_SELF = griffe.Parameter("self", kind=griffe.ParameterKind.positional_or_keyword)


class Docstrings(griffe.Extension):
    """Rewrites the docstrings of a package once all of it is known."""

    def on_package(self, *, pkg: griffe.Module, loader: Any, **_: Any) -> None:
        """Take up a package that was read."""
        for one in _everything(pkg):
            if one.docstring is not None:
                one.docstring.value = _rewritten(one, one.docstring.value)
            if isinstance(one, griffe.Class) and one.name.endswith(_SETTINGS):
                _tell_defaults(one)


def _everything(one: griffe.Object) -> Iterator[griffe.Object]:
    yield one
    for member in list(one.members.values()):
        if isinstance(member, griffe.Object):
            yield from _everything(member)


def _rewritten(one: griffe.Object, text: str) -> str:
    text = _LITERAL.sub(":", _ROLE.sub(lambda role: _link(one, *role.groups()), text))
    return _TABLE.sub(lambda table: _TOGETHER.sub(_apart, table[0]), text)


def _apart(entry: re.Match[str]) -> str:
    first, others, text = entry.groups()
    rows = [f"{name}\n    See `{first}`.\n" for name in others.removeprefix(", ").split(", ")]
    return f"{first}\n{text.rstrip()}\n" + "".join(rows)


def _link(one: griffe.Object, short: str, name: str) -> str:
    """A link where the site describes what is named, its name otherwise."""
    try:
        path = name if name.startswith("costlib.") else one.resolve(name)
    except griffe.NameResolutionError:
        path = name
    shown = name.rpartition(".")[2] if short else name
    return f'<autoref optional identifier="{path}"><code>{shown}</code></autoref>'


def _tell_defaults(settings: griffe.Class) -> None:
    """Describe fields as the parameters that they are, with their defaults."""
    family = reversed([settings, *_parents(settings)])
    fields = [field for one in family for field in _fields(one)]
    settings.set_member(
        "__init__",
        griffe.Function("__init__", parent=settings, parameters=griffe.Parameters(_SELF, *fields)),
    )
    if settings.docstring is not None:
        text = settings.docstring.value
        settings.docstring.value = text.replace("\nAttributes\n-", "\nParameters\n-")


def _parents(settings: griffe.Class) -> list[griffe.Class]:
    return [one for one in settings.resolved_bases if isinstance(one, griffe.Class)]


def _fields(settings: griffe.Class) -> Iterator[griffe.Parameter]:
    for name, member in settings.members.items():
        if isinstance(member, griffe.Attribute) and member.annotation and name != "model_config":
            default = member.value
            if isinstance(default, griffe.ExprCall) and default.canonical_name == "Field":
                first = default.arguments[0]
                default = None if isinstance(first, griffe.ExprKeyword) else first
            yield griffe.Parameter(
                name,
                annotation=member.annotation,
                kind=griffe.ParameterKind.keyword_only,
                default=default,
            )
