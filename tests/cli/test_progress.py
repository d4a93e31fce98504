"""What is shown of long work: on a narrow terminal, and on a pipe."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from costlib.cli.progress import LINE_SECS, Lines, progress_on

HARDWARE = "amd-epyc-f25m17-x86-64-v3-2c-9cfdd60a"


def test_on_a_narrow_terminal_names_give_way_and_numbers_stay() -> None:
    screen = StringIO()
    console = Console(file=screen, width=80)
    progress = progress_on(console)
    line = progress.add_task(f"1/2 training tasks on {HARDWARE} conv2d_add_relu", total=26_400)
    progress.update(line, completed=13_200)
    console.print(progress)
    (shown,) = screen.getvalue().splitlines()
    assert "13200/26400" in shown
    assert "0:00:00" in shown and "left:" in shown
    assert "1/2 training" in shown and HARDWARE not in shown
    assert len(shown) <= 80


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def lines_of(updates: list[tuple[float, dict[str, object]]]) -> list[str]:
    clock, screen = Clock(), StringIO()
    lines = Lines(Console(file=screen, width=80), "collecting", clock)
    for clock.now, changes in updates:
        lines.update(**changes)  # type: ignore[arg-type]
    return screen.getvalue().splitlines()


def test_a_line_every_half_minute_says_what_is_left() -> None:
    steps = [(float(t), {"completed": t, "total": 1200}) for t in range(100)]
    first, *others = lines_of(steps)
    assert first == "[    30 s] collecting: 30 of 1,200, about 20 min left"
    assert len(others) == 2
    assert lines_of(steps[: int(LINE_SECS)]) == []


def test_the_estimate_is_of_the_part_at_work() -> None:
    updates = [
        (0.0, {"completed": 0, "total": 10, "description": "reading"}),
        (1.0, {"completed": 10, "total": 10}),
        (10.0, {"completed": 0, "total": 100, "description": "growing"}),
        (40.0, {"completed": 10, "total": 100}),
    ]
    assert lines_of(updates)[-1] == "[    40 s] growing: 10 of 100, about 4 min left"


def test_what_an_update_leaves_out_stays() -> None:
    updates = [
        (0.0, {"completed": 0, "total": 10}),
        (20.0, {"description": "still collecting"}),
        (30.0, {"completed": 5}),
    ]
    assert lines_of(updates) == ["[    30 s] still collecting: 5 of 10, about 0 min left"]


def test_without_an_end_there_is_no_estimate() -> None:
    updates = [(31.0, {"advance": 1, "description": "importing a.json"})]
    assert lines_of(updates) == ["[    31 s] importing a.json"]
