from __future__ import annotations

from pathlib import Path

import pytest

from costlib.collecting.plan import CollectionPlan, Mix, load_plan
from costlib.errors import InputError


def write(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "plan.toml"
    file.write_text(text)
    return file


def test_a_small_plan(tmp_path: Path) -> None:
    plan = load_plan(write(tmp_path, 'sources = ["matmul 8 8 8"]\nmix = {evolved = 0}'))
    assert plan.sources == ("matmul 8 8 8",)
    assert plan.hardware[0].held_out
    assert plan.mix == Mix(evolved=0, mutated=0.5)


def test_the_shipped_plan() -> None:
    plan = load_plan(Path(__file__).parents[2] / "datasets" / "zoo.toml")
    assert not set(plan.sources) & set(plan.held_out.networks)
    assert plan.mutations.parents >= 3000


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("sources = [", "no TOML"),
        ("sources = []", "sources"),
        ('sources = ["a"]\nprograms_per_task = 0', "programs_per_task"),
        ('sources = ["a"]\nprogramms = 3', "programms"),
        ('sources = ["a"]\nmodel = "m"\n[mix]\nevolved = 0.7\nmutated = 0.7', "more than 1"),
        ('sources = ["a"]\n[mutations]\nparents = 3', "model"),
        ('sources = ["a"]\nmix = {evolved = 0}\n[[hardware]]\ncores = "many"', "cores"),
    ],
)
def test_a_wrong_plan_is_one_clear_line(tmp_path: Path, text: str, complaint: str) -> None:
    file = write(tmp_path, text)
    with pytest.raises(InputError, match=complaint) as caught:
        load_plan(file)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        load_plan(tmp_path / "none.toml")


def test_a_plan_survives_json() -> None:
    plan = CollectionPlan(sources=("a",), mix=Mix(evolved=0))
    assert CollectionPlan.model_validate_json(plan.model_dump_json()) == plan
