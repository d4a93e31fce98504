"""Brings a dataset's feature store up to date: what is missing is computed on all cores.

Each finished job is a part of its own (:mod:`costlib.features.worker`), so a build that is
killed loses a few seconds of work and the next goes on. Two builds at once do some work twice;
readers take each program once.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager

import polars as pl

from costlib.data.dataset import Dataset
from costlib.errors import StorageError
from costlib.features.programs import programs_by_task
from costlib.features.store import FeatureStore
from costlib.features.worker import Answer, Job, attempt

_JOB_PROGRAMS = 1024
_FEW_PROGRAMS = 512
"""Up to this many, starting processes costs more than it saves."""

_log = logging.getLogger(__name__)

Progress = Callable[[int, int], None]


def build_features(
    dataset: Dataset,
    hardware_id: str,
    on_progress: Progress | None = None,
    only: Collection[str] | None = None,
) -> FeatureStore:
    """Compute the features of all programs that ran and have none yet; return all there are.

    Programs that this TVM cannot replay, and those of workloads without IR, have none.

    Parameters
    ----------
    on_progress
        Called with (programs done, programs missing) after each job.
    only
        Ids of the workloads whose programs are looked at; all by default.

    Raises
    ------
    StorageError
        They could not be written; what was there before still is.
    """
    store = FeatureStore(dataset, hardware_id)
    missing = _count_missing(dataset, hardware_id, store, only)
    if not missing:
        return store
    build = _Build(_jobs(dataset, hardware_id, store, set(missing)), missing, on_progress)
    build.run(1 if build.total <= _FEW_PROGRAMS else os.cpu_count() or 1)
    if build.replayed < build.total:
        _log.warning(
            "%d of %d programs cannot be replayed by this TVM and are left out%s",
            build.total - build.replayed,
            build.total,
            f" ({build.error})" if build.error else "",
        )
    return store


def _count_missing(
    dataset: Dataset, hardware_id: str, store: FeatureStore, only: Collection[str] | None
) -> dict[str, int]:
    with_ir = dataset.scan("workloads").filter(pl.col("mod_json").is_not_null())
    ids = set(with_ir.select("workload_id").collect()["workload_id"])
    chosen = ids if only is None else ids.intersection(only)
    missing = {}
    for workload_id, programs in programs_by_task(dataset, hardware_id, only=chosen):
        if count := len(_unknown(programs, store, workload_id)):
            missing[workload_id] = count
    return missing


def _unknown(programs: pl.DataFrame, store: FeatureStore, workload_id: str) -> pl.DataFrame:
    known = store.known(workload_id)
    return programs.join(known, on="program_id", how="anti", maintain_order="left")


def _jobs(dataset: Dataset, hardware_id: str, store: FeatureStore, only: set[str]) -> Iterator[Job]:
    sketches = dict(
        dataset.scan("sketches").select("sketch_id", "instructions").collect().iter_rows()
    )
    hardware = dataset.hardware()[hardware_id]
    workloads = dataset.scan("workloads")
    columns = (pl.col("sketch_id").first(), pl.col("decisions").first())
    for workload_id, programs in programs_by_task(dataset, hardware_id, *columns, only=only):
        workload = workloads.filter(pl.col("workload_id") == workload_id)
        name, mod_json = workload.select("name", "mod_json").collect().row(0)
        for rows in _unknown(programs, store, workload_id).iter_slices(_JOB_PROGRAMS):
            used = {i: sketches[i] for i in rows["sketch_id"].unique() if i in sketches}
            yield Job(
                folder=store.folder,
                scratch=dataset.scratch,
                workload_id=workload_id,
                name=name,
                mod_json=mod_json,
                hardware=hardware,
                programs=list(rows.iter_rows()),
                sketches=used,
            )


class _Build:
    """Hands jobs to workers, one thread for each worker."""

    def __init__(
        self, jobs: Iterator[Job], missing: dict[str, int], on_progress: Progress | None
    ) -> None:
        self.total = sum(missing.values())
        self.replayed = 0
        self.error: str | None = None
        self._done = 0
        self._jobs = jobs
        self._on_progress = on_progress
        self._lock = threading.Lock()
        self._stopped = False

    def run(self, processes: int) -> None:
        if processes == 1:
            for job in self._jobs:
                self._do(job, attempt)
            return
        with ThreadPoolExecutor(processes) as threads:
            try:
                for future in [threads.submit(self._work) for _ in range(processes)]:
                    future.result()
            finally:
                self._stopped = True

    def _work(self) -> None:
        with _Worker() as worker:
            while (job := self._next()) is not None:
                self._do(job, worker.compute)

    def _next(self) -> Job | None:
        with self._lock:
            return None if self._stopped else next(self._jobs, None)

    def _do(self, job: Job, compute_job: Callable[[Job], Answer]) -> None:
        """Do a job; if it fails, find the programs that are to blame and do the others."""
        answer = compute_job(job)
        if answer.storage:
            raise StorageError(answer.error)
        if answer.error is not None and len(job.programs) > 1 and not self._stopped:
            for half in job.halves():
                self._do(half, compute_job)
            return
        with self._lock:
            self.replayed += answer.replayed
            self.error = answer.error or self.error
            self._done += len(job.programs)
            if self._on_progress is not None:
                self._on_progress(self._done, self.total)


class _Worker(AbstractContextManager["_Worker"]):
    """A process of :mod:`costlib.features.worker`; if it dies, another takes its place."""

    def __init__(self) -> None:
        self._start()

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def compute(self, job: Job) -> Answer:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        try:
            stdin.write(job.model_dump_json() + "\n")
            stdin.flush()
            line = stdout.readline()
        except BrokenPipeError:
            line = ""
        if line:
            return Answer.model_validate_json(line)
        code = self._process.wait()
        self._start()
        return Answer(error=f"the process that computed features died ({code})")

    def _start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "costlib.features.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"TVM_NUM_THREADS": "1"},
            start_new_session=True,
            text=True,
        )
