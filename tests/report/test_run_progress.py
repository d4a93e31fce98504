"""What a run's report says of programs that were measured more than once."""

from __future__ import annotations

import polars as pl

from costlib.report.progress import by_origin, with_progress
from costlib.schema import Origin, Status
from costlib.space.program import Program


def test_a_lucky_program_is_not_the_best_in_the_end() -> None:
    rows = [
        ("steady", Origin.GENERATED, 10.0),
        ("broken", Origin.EVOLVED, None),
        ("lucky", Origin.EVOLVED, 8.0),
        ("lucky", Origin.REPEATED, 14.0),
        ("lucky", Origin.REPEATED, 13.0),
    ]
    trials = with_progress(
        pl.DataFrame(
            {
                "workload_id": "w",
                "program_id": Program("w", sketch_id, []).program_id,
                "sketch_id": sketch_id,
                "decisions": "[]",
                "origin": str(origin),
                "latency_s": latency_s,
                "status": str(Status.RUN_ERROR if latency_s is None else Status.OK),
                "measured_at": number,
            }
            for number, (sketch_id, origin, latency_s) in enumerate(rows)
        )
    )
    assert trials["trial"].to_list() == [1, 2, 3, 4, 5]
    assert trials["best_s"].to_list() == [10.0, 10.0, 8.0, 8.0, 10.0]
    assert trials["is_better"].to_list() == [True, False, True, False, False]
    assert trials["is_final"].to_list() == [True, False, False, False, False]
    given = {row.pop("origin"): row for row in by_origin(trials).to_dicts()}
    assert given["generated"] | {"median_ratio": 1.0} == {
        "trials": 1,
        "failed": 0,
        "better": 1,
        "final": 1,
        "median_ratio": 1.0,
    }
    assert (given["evolved"]["failed"], given["evolved"]["better"]) == (1, 1)
    assert (given["repeated"]["final"], given["repeated"]["better"]) == (0, 0)
