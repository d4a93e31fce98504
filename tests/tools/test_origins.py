"""A page says where each of its tables was measured, or it is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tools.evidence import origins, provenance
from tools.evidence.goals import Goals
from tools.evidence.origins import origin, unnamed
from tools.evidence.provenance import Measured, Provenance, Run, measured

GOALS = Goals(
    search_overhead_ratio=1,
    ranking_top1=1,
    generated_of_long=1,
    slower_than_pytorch=0,
    surrogate_correlation=1,
    diffusion_gain=1,
    directions_gain=1,
    faster_than={},
)
TABLE = "| what | ms |\n| --- | ---: |\n| one | 1.0 |"


def run(part: str, machine: str | None = "a-1", commit: str | None = None, **known: Any) -> Run:
    days = known.pop("measured", ("2026-01-01", "2026-01-01"))
    fields = {"command": "tools.x", "since": (), **known}
    return Run(part=part, machine=machine, commit=commit, measured=days, **fields)


def made_up(*runs: Run, others: tuple[Run, ...] = ()) -> Provenance:
    """Two benchmarks; the page of the second is another one."""
    return Provenance(
        machines={"a-1": "machine A", "b-2": "machine B"},
        changes={"loops": "loops are seen"},
        goals=GOALS,
        benchmarks={
            "speed": Measured(page="speed", runs=runs),
            "others": Measured(page="others", runs=others),
        },
    )


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Provenance:
    found: Provenance = request.param
    monkeypatch.setattr(provenance, "provenance", lambda: found)
    monkeypatch.setattr(origins, "provenance", lambda: found)
    return found


def page(*sections: str) -> str:
    return "\n\n".join(["# Speed", *sections, *measured("speed")])


ONE_PLACE = made_up(run("fast"), run("slow"), run("anywhere", None))
TWO_MACHINES = made_up(run("fast"), run("fast", "b-2"))
TWO_COMMITS = made_up(run("fast", commit="aaaa"), run("slow", commit="bbbb"))


@pytest.mark.parametrize("known", [ONE_PLACE], indirect=True)
def test_one_machine_and_commit_need_no_name_in_each_section(known: Provenance) -> None:
    assert unnamed(page(TABLE), "speed", known) == []


@pytest.mark.parametrize("known", [TWO_MACHINES, TWO_COMMITS], indirect=True)
def test_a_table_that_may_mix_is_refused(known: Provenance) -> None:
    problems = unnamed(page(TABLE), "speed", known)
    assert "# Speed: a table, and no word of where it was measured" in problems


@pytest.mark.parametrize("known", [TWO_MACHINES, TWO_COMMITS], indirect=True)
def test_a_table_that_names_all_is_not(known: Provenance) -> None:
    assert unnamed(page(origin("speed"), TABLE), "speed", known) == []


@pytest.mark.parametrize("known", [TWO_MACHINES], indirect=True)
def test_each_section_needs_names_and_none_is_left_out(known: Provenance) -> None:
    named = page(origin("speed"), TABLE, "## More", TABLE)
    assert unnamed(named, "speed", known) == [
        "## More: a table, and no word of where it was measured"
    ]
    less = page("*Measured: fast: machine A.*", TABLE)
    assert unnamed(less, "speed", known) == ["# Speed: fast was measured on machine B, too"]


@pytest.mark.parametrize("known", [TWO_MACHINES], indirect=True)
def test_a_section_may_show_one_machine_alone_if_it_says_so(known: Provenance) -> None:
    alone = [origin("speed", hardware=hardware) for hardware in ("a-1", "b-2")]
    assert alone[0] == "*Measured: fast: machine A alone.*"
    assert unnamed(page(alone[0], TABLE, "## More", alone[1], TABLE), "speed", known) == []
    false = page("*Measured: fast: machine C alone.*", TABLE)
    assert unnamed(false, "speed", known) == ["# Speed: fast was not measured on machine C"]


@pytest.mark.parametrize("known", [TWO_COMMITS], indirect=True)
def test_all_that_was_measured_is_named_somewhere_and_nothing_else(known: Provenance) -> None:
    assert unnamed(page(origin("speed", "fast"), TABLE), "speed", known) == [
        "slow: no table says that it shows this"
    ]
    words = origin("speed").replace("slow:", "idle:")
    assert unnamed(page(words, TABLE), "speed", known) == [
        "# Speed: nothing was measured as 'idle'",
        "slow: no table says that it shows this",
    ]


@pytest.mark.parametrize(
    "known", [made_up(run("fast"), others=(run("lent", "b-2"),))], indirect=True
)
def test_what_a_page_shows_of_another_one_counts(known: Provenance) -> None:
    text = page(TABLE, "## Lent", origin("others"), TABLE)
    assert "# Speed: a table, and no word of where it was measured" in unnamed(text, "speed", known)


@pytest.mark.parametrize(
    "known",
    [made_up(run("fast", commit="aaaa", measured=("2026-01-02", "2026-01-02")), run("slow"))],
    indirect=True,
)
def test_a_page_says_in_one_place_what_is_older_than_the_newest_evidence(known: Provenance) -> None:
    text = page()
    assert text.count("**Older**") == 1
    assert "than the newest evidence, which is of commit `aaaa`: slow." in text


def test_of_one_day_the_newest_is_the_last_after_which_nothing_changed() -> None:
    runs = run("a", commit="aa"), run("b", commit="bb"), run("c", commit="cc", since=("loops",))
    newest = made_up(*runs).newest
    assert newest is not None and newest.commit == "bb"


@pytest.mark.parametrize("known", [made_up(run("fast", since=("loops",)))], indirect=True)
def test_a_page_says_what_has_changed_since(known: Provenance) -> None:
    text = page()
    assert "**Older** than costlib is now: fast." in text
    assert "- *loops*: loops are seen" in text
    assert "| older: loops |" in text


@pytest.mark.parametrize("known", [made_up(run("fast", commit="aaaa"))], indirect=True)
def test_what_is_new_is_not_called_older(known: Provenance) -> None:
    assert "lder" not in page()
