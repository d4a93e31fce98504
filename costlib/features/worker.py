"""Computes the features of a few programs of one task: here, or as a process of its own.

As a process (``python -m costlib.features.worker``) it reads a job a line from its standard input
and answers each with a line; it ends when its parent does.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from costlib.errors import StorageError
from costlib.features.store import ProgramFeatures, append_features
from costlib.files import first_line
from costlib.frozen import FrozenStrict
from costlib.hardware import Hardware


class Job(FrozenStrict):
    """Programs of one task on one hardware.

    Attributes
    ----------
    folder, scratch
        Where their features go, see :func:`costlib.features.store.append_features`.
    programs
        (program_id, sketch_id, decisions) of each.
    sketches
        The instructions of their sketches by sketch_id.
    """

    folder: Path
    scratch: Path
    workload_id: str
    name: str
    mod_json: str
    hardware: Hardware
    programs: list[tuple[str, str, str]]
    sketches: dict[str, str]

    def halves(self) -> list[Job]:
        """Cut a job of two or more programs in two."""
        middle = len(self.programs) // 2
        parts = (self.programs[:middle], self.programs[middle:])
        return [self.model_copy(update={"programs": part}) for part in parts]


class Answer(FrozenStrict):
    """How a job ended: how many programs could be replayed, or what went wrong.

    ``storage`` says that it was the writing that failed.
    """

    replayed: int = 0
    error: str | None = None
    storage: bool = False


def compute(job: Job) -> Answer:
    """Compute the features of a job's programs and append them to the store."""
    from costlib.features.lowered import extract_stores
    from costlib.features.nest_features import describe_nests
    from costlib.space.design_space import DesignSpace
    from costlib.space.program import Program, Sketch
    from costlib.tvm_compat.api import module_from_json
    from costlib.workloads.task import Task

    space = DesignSpace(Task(job.name, module_from_json(job.mod_json), job.hardware.target))
    sketches = {sketch_id: Sketch.from_json(text) for sketch_id, text in job.sketches.items()}
    schedules = {}
    for program_id, sketch_id, decisions in job.programs:
        program = Program.from_row(job.workload_id, sketch_id, decisions)
        schedule = space.lower(program, sketches.get(sketch_id))
        if schedule is not None:
            schedules[program_id] = schedule
    stores = extract_stores(space.context, list(schedules.values()))
    nests = describe_nests([schedule.mod for schedule in schedules.values()], job.hardware)
    features = dict(zip(schedules, map(ProgramFeatures, stores, nests), strict=True))
    program_ids = [program_id for program_id, _, _ in job.programs]
    rows = [features.get(program_id) for program_id in program_ids]
    append_features(job.folder, job.scratch, job.workload_id, program_ids, rows)
    return Answer(replayed=len(features))


def attempt(job: Job) -> Answer:
    """Do a job; whatever TVM raises is in the answer."""
    try:
        return compute(job)
    except Exception as error:
        return Answer(error=first_line(error), storage=isinstance(error, StorageError))


def main() -> None:
    """Do the jobs on standard input."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # What TVM prints must not mix with the answers.
    for line in sys.stdin:
        job = Job.model_validate_json(line)
        answer = attempt(job)
        print(answer.model_dump_json(), file=answers, flush=True)


if __name__ == "__main__":
    main()
