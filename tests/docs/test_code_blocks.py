"""The code in README.md, CONTRIBUTING.md and the site's pages does what they say.

A page's blocks are run in their order, in one namespace and one folder: Python as it is, and of a
shell block the lines that call ``costlib``. Budgets and networks are made small first. A block
that a comment excuses (``<!-- skip: next "needs a GPU" -->``) is not run, but its calls of
``costlib`` must still be ones that the command line understands.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import SkipTest

import pytest
from sybil import Document, Example
from sybil.parsers.markdown import CodeBlockParser, SkipParser
from typer.main import get_command
from typer.testing import CliRunner

from costlib.cli.app import app
from costlib.data.sample import sample

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))

OPERATORS = {
    "bert_small": "softmax 64 64",
    "bert_tiny": "matmul 64 64 64",
    "matmul 384 768 3072": "matmul 64 32 16",
    "resnet_18": "dense 32 64 64",
}
"""What is measured in the place of something large."""

SMALLER = (
    (re.compile(r"\b(trials ?= ?)\d+"), r"\g<1>2"),
    (re.compile(r"\b(programs_per_task ?= ?)\d+"), r"\g<1>4"),
    (re.compile(f'(?<=")({"|".join(OPERATORS)})(?=")'), lambda name: OPERATORS[name[0]]),
)
SMALLER_OPTIONS = {"--trials": "2", "--programs": "4"}

NEED_DATA = {"datasets", "security", "train"}
"""Pages that begin with a small dataset in ``data``."""


def smaller(text: str) -> str:
    for pattern, replacement in SMALLER:
        text = pattern.sub(replacement, text)
    return text


def smaller_words(words: list[str]) -> list[str]:
    pairs = zip(["", *words], words, strict=False)
    return [OPERATORS.get(word) or SMALLER_OPTIONS.get(option, word) for option, word in pairs]


def calls_of_costlib(block: str) -> Iterator[list[str]]:
    """Yield the arguments of each call of ``costlib`` in a shell block."""
    for line in block.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["costlib"]:
            yield words[1:]


def run_python(example: Example) -> None:
    code = "\n" * example.line + smaller(example.parsed)
    exec(compile(code, example.path, "exec"), example.namespace)


def run_commands(example: Example) -> None:
    for words in calls_of_costlib(example.parsed):
        done = CliRunner().invoke(app, smaller_words(words), catch_exceptions=False)
        assert done.exit_code == 0, f"{shlex.join(words)}: {done.output}"


def write_file(example: Example) -> None:
    """Write a file that begins with its name in a comment."""
    name = example.parsed.partition("\n")[0].removeprefix("# ")
    Path(name).write_text(smaller(example.parsed))


PARSERS = (
    CodeBlockParser("bash", run_commands),
    CodeBlockParser("python", run_python),
    CodeBlockParser("toml", write_file),
    SkipParser(),
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if page.stem in NEED_DATA:
        sample(ROOT / "datasets" / "zoo", tmp_path / "data", programs_per_task=4, tasks=3)
    for example in Document.parse(str(page), *PARSERS).examples():
        try:
            example.evaluate()
        except SkipTest:
            continue


def silenced(command: Any) -> Any:
    """A command line that understands its arguments and does nothing."""
    command.callback = None
    for inner in getattr(command, "commands", {}).values():
        silenced(inner)
    return command


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_is_understood_even_where_it_is_not_run(page: Path) -> None:
    command = silenced(get_command(app))

    def parse_commands(example: Example) -> None:
        for words in calls_of_costlib(example.parsed):
            command.main(words, standalone_mode=False)

    def parse_python(example: Example) -> None:
        compile("\n" * example.line + example.parsed, example.path, "exec")

    shell, python = CodeBlockParser("bash", parse_commands), CodeBlockParser("python", parse_python)
    for example in Document.parse(str(page), shell, python).examples():
        example.evaluate()
