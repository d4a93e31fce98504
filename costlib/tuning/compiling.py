"""The networks of a run, compiled with its best programs and compared with what they were."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from costlib.errors import DifferentNetworkError
from costlib.hardware import Hardware
from costlib.measure.jobs import SLOW_SECS
from costlib.measure.measurer import Measurer
from costlib.tuning.close_versions import fastest_version
from costlib.tuning.comparison import compare
from costlib.tuning.database import only
from costlib.tuning.library import NetworkLibrary
from costlib.tuning.networks import NetworkSet
from costlib.tuning.originals import Arrays, Original, call_library, faults_of
from costlib.tuning.profile import forget_profile, note_profile
from costlib.tuning.ranges import (
    RangeResult,
    RoundedShapes,
    check_shapes,
    compared_shapes,
    range_result,
)
from costlib.tuning.result import NetworkResult
from costlib.tuning.vendor import Vendor, VendorProgram, faster_by_onednn
from costlib.tvm_compat.direct_calls import MAIN
from costlib.workloads import Network, prepare_network
from costlib.workloads.agreement import OutputAgreement
from costlib.workloads.layout import CHANNELS_LAST
from costlib.workloads.ranges.ranged import RangedNetwork
from costlib.workloads.ranges.table import Point
from costlib.workloads.task import Task

_log = logging.getLogger(__name__)


class Built(NamedTuple):
    """A compiled network, where its library was written, and which function of it it is."""

    path: Path
    library: NetworkLibrary
    function: str = MAIN


class Compiler:
    """Compiles the networks of a run, untuned before it, tuned after it, and compares them.

    Parameters
    ----------
    networks
        The networks, perhaps in several layouts each.
    hardware, measurer
        What to compile for, and what runs it.
    report
        Told what is being done.
    against
        Names of the engines that the compiled networks are compared with.

    Attributes
    ----------
    networks
        The same, and versions of them that came of what was measured.
    ranges
        What came of networks whose dimensions have ranges.
    """

    def __init__(
        self,
        networks: NetworkSet,
        hardware: Hardware,
        measurer: Measurer,
        report: Callable[[str], None],
        against: Sequence[str] = (),
        vendor: Vendor | None = None,
    ) -> None:
        self.networks = networks
        self._hardware = hardware
        self._measurer = measurer
        self._report = report
        self._against = against
        self._vendor = vendor
        self._originals: dict[int, Original] = {}
        self._differ_untuned: set[str] = set()
        self._rounded: dict[str, RoundedShapes] = {}
        self.ranges: list[RangeResult] = []
        self._by_vendor: Mapping[str, VendorProgram] = {}

    def compare_untuned(self, *, allow_different: bool) -> None:
        """Compare each network as it was given, untuned, with its original.

        Raises
        ------
        DifferentNetworkError
            One of them computes something else, and that is not allowed.
        """
        versions = range(len(self.networks.networks))
        for number in sorted({self.networks.given(version) for version in versions}):
            network = self.networks.networks[number]
            self._report(f"comparing {network.name} with its original")
            library = self._measurer.server.folder / f"untuned-network-{number}.so"
            runs_on = self._untuned_on()
            library = NetworkLibrary.build(self.networks.prepared[number], runs_on).save(library)
            rounded = None
            if network.is_rounded:
                rounded = self._measurer.server.folder / f"rounded-network-{number}.so"
                module = prepare_network(network, self._hardware, in_float=True)
                rounded = NetworkLibrary.build(module, runs_on).save(rounded)
            original = Original(network, library, self._measurer, rounded)
            self._originals[number] = original
            if original.faults and not allow_different:
                is_last = network.name.endswith(CHANNELS_LAST)
                without = "try it without channels last (--layouts given); " if is_last else ""
                raise DifferentNetworkError(
                    f"{network.name} computes something else than {original.name}: "
                    f"{'; '.join(original.faults)}; {without}--allow-different tunes it all the "
                    "same"
                )
        for first, found in self.networks.ranges:
            self._report(f"comparing {found.name} between its points")
            points = found.table.points
            libraries = {
                point.sizes: self._originals[number].library
                for number, point in enumerate(points, start=first)
            }
            anywhere = self._measurer.server.folder / f"untuned-anywhere-{first}.so"
            if (module := found.at_any_shape(self._hardware)) is not None:
                anywhere = NetworkLibrary.build(module, self._untuned_on()).save(anywhere)

            def untuned(
                point: Point, arrays: Arrays, places: Any = libraries, other: Path = anywhere
            ) -> Arrays:
                return call_library(places.get(point.sizes, other), arrays, self._measurer)[0]

            if found.networks[-1].is_rounded:
                self._rounded[found.name] = RoundedShapes(found, self._rounded_alone)
            compared = compared_shapes(found, untuned, self._rounded.get(found.name))
            if not allow_different:
                check_shapes(found, compared)
            self._differ_untuned |= {found.name for one in compared if one.fault}

    def _rounded_alone(self, network: Network, arrays: Arrays) -> Arrays:
        """Compile a network that is no part of the run, in float32 and untuned, and run it."""
        module = prepare_network(network, self._hardware, in_float=True)
        path = self._measurer.server.folder / f"alone-{library_name(network.name, 2)}"
        library = NetworkLibrary.build(module, self._untuned_on()).save(path)
        return call_library(library, arrays, self._measurer)[0]

    def _untuned_on(self) -> Hardware:
        """Return what the untuned network is compiled for."""
        return self._hardware

    def compile_tuned(
        self,
        latency_s: Sequence[float],
        out: Path,
        database: Any,
    ) -> tuple[list[Any], set[str]]:
        """Compile the fastest version of each network and compare it with what it was before.

        That is: with the network as it was given, untuned, and with its original. Where its time
        goes is noted, if it runs on this machine; what was noted of older libraries is removed.

        Parameters
        ----------
        latency_s
            Best seconds of each task.
        out
            Where the libraries go.
        database
            The best programs, see :func:`costlib.tuning.database.write_database`.

        Returns
        -------
        results, wrong
            A :class:`costlib.tuning.result.NetworkResult` of each; and workload ids of tasks that
            are left as they are, because with a program of theirs a network computes something
            else.

        Raises
        ------
        DifferentNetworkError
            A network computes something else, and no program is to blame.
        """
        results: list[Any] = []
        wrong: set[str] = set()
        files: dict[Path, Built] = {}
        forget_profile(out)
        if self._vendor is not None:
            self._report("trying kernels of oneDNN")
            tasks = self.networks.tasks
            self._by_vendor = faster_by_onednn(tasks, latency_s, database, self._measurer)
            latency_s = [
                self.vendor_s(task) or known_s
                for task, known_s in zip(tasks, latency_s, strict=True)
            ]
        self._report("choosing between the versions")
        self.networks = self.networks.mixed(latency_s, self._hardware).served_by(latency_s)
        for close in self.networks.fastest(latency_s):
            number = self._fastest(close, database)
            given = self.networks.given(number)
            if not self.networks.serves(given):
                continue
            network, original = self.networks.networks[number], self._originals[given]
            path, function = self._place(given, out)
            if path not in files:
                self._report(f"compiling {self._title(given)}")
                files[path] = self._build(number, database, path)
            self._report(f"comparing {network.name}")
            built = files[path]._replace(function=function)
            outputs, tuned_s = self._compare(original, built)
            if faults_of(outputs) and not original.faults:
                blamed = self._blamed(number, database, original)
                for task in blamed:
                    _log.warning("%s computes something else once tuned; it is left", task.title)
                wrong |= {task.workload_id for task in blamed}
                kept = [t for t in self.networks.tasks if t.workload_id not in wrong]
                files[path] = self._build(number, only(database, kept), path)
                built = files[path]._replace(function=function)
                outputs, tuned_s = self._compare(original, built)
                if faults := faults_of(outputs):
                    raise DifferentNetworkError(
                        f"{network.name} computes something else than {original.name}: "
                        f"{'; '.join(faults)}"
                    )
            results.append(self._result(network, original, built, outputs, tuned_s))
        self.ranges = [self._ranged(found, out, results) for _, found in self.networks.ranges]
        self._note_profile(out, results, latency_s)
        return results, wrong

    def vendor_s(self, task: Task) -> float | None:
        """Return what a task takes by the vendor's kernel, if that is the one that is taken."""
        found = self._by_vendor.get(task.workload_id)
        return None if found is None else found.latency_s

    def _title(self, number: int) -> str:
        found = self.networks.range_of(number)
        return self.networks.networks[number].name if found is None else found.name

    def _place(self, number: int, out: Path) -> tuple[Path, str]:
        """Return the file that a network is compiled to, and which function of it that is."""
        path = out / library_name(self._title(number), self.networks.file_count)
        if (found := self.networks.range_of(number)) is None:
            return path, MAIN
        return path, found.functions[number - self.networks.first_point(found)]

    def _build(self, number: int, database: Any, path: Path) -> Built:
        """Compile a network; with all the others of its range, if it is a point of one."""
        module = self.networks.prepared[number]
        if (found := self.networks.range_of(number)) is not None:
            first = self.networks.first_point(found)
            points = self.networks.prepared[first : first + len(found.networks)]
            module = found.as_one(points, self._hardware)
        return self._built(module, database, path)

    def _built(self, module: Any, database: Any, path: Path) -> Built:
        library = NetworkLibrary.build(module, self._hardware, database, self._by_vendor)
        return Built(library.save(path), library)

    def _compare(
        self, original: Original, built: Built
    ) -> tuple[list[OutputAgreement], list[float]]:
        """Run a network once or twice; see :meth:`costlib.tuning.originals.Original.compare`."""
        return original.compare(built.path, self._measurer, built.function)

    def _result(
        self,
        network: Network,
        original: Original,
        built: Built,
        outputs: Sequence[OutputAgreement],
        tuned_s: Sequence[float],
    ) -> Any:
        """Time a network beside others, and say what came of it.

        Beside engines, of a network with ranges the least and the largest point alone.
        """
        against = () if self.networks.is_inner_point(network.name) else self._against
        figures = compare(
            network,
            original,
            built.path,
            self._measurer,
            outputs,
            tuned_s,
            against,
            self._report,
            built.function,
        )
        return NetworkResult(
            network=network.name,
            library=str(built.path),
            function=built.function,
            needs=built.library.needs,
            **figures.model_dump(),
        )

    def _note_profile(self, out: Path, results: Sequence[Any], latency_s: Sequence[float]) -> None:
        fast = [one for one in results if one.latency_after_s < SLOW_SECS]
        is_traced = self._measurer.devices is None and self._hardware.kind == "cpu"
        if is_traced and fast:
            self._report("noting where the time goes")
            timed = zip(self.networks.tasks, latency_s, strict=True)
            known_s = {task.workload_id: s for task, s in timed if math.isfinite(s)}
            note_profile(out, fast, self._measurer, known_s)

    def _ranged(
        self, found: RangedNetwork, out: Path, results: Sequence[NetworkResult]
    ) -> RangeResult:
        """Compare a network at shapes between its points; return what came of it."""
        library = out / library_name(found.name, self.networks.file_count)
        self._report(f"comparing {found.name} between its points")

        def tuned(point: Point, arrays: Arrays) -> Arrays:
            return call_library(library, arrays, self._measurer, point.function)[0]

        compared = compared_shapes(found, tuned, self._rounded.get(found.name))
        if found.name not in self._differ_untuned:
            check_shapes(found, compared)
        return range_result(found, library, {one.network: one for one in results}, compared)

    def _fastest(self, close: Sequence[int], database: Any) -> int:
        """Return the fastest of versions of which sums over tasks cannot tell."""
        if len(close) == 1 or self._measurer.devices is not None:
            return close[0]
        self._report(f"timing {len(close)} versions of {self.networks.networks[close[0]].name}")
        builds = [partial(self._build, number, database) for number in close]
        return close[fastest_version(builds, self._measurer)]

    def _blamed(self, number: int, database: Any, original: Original) -> list[Task]:
        """Return the tasks whose programs make a network compute something else, by halving."""
        path = self._measurer.server.folder / "blamed.so"

        def among(tasks: Sequence[Task]) -> list[Task]:
            built = self._built(self.networks.prepared[number], only(database, tasks), path)
            if not faults_of(self._compare(original, built)[0]):
                return []
            if len(tasks) == 1:
                return list(tasks)
            half = len(tasks) // 2
            return among(tasks[:half]) + among(tasks[half:])

        calls = self.networks.calls[number]
        return among([t for t, count in zip(self.networks.tasks, calls, strict=True) if count])


def library_name(network: str, count: int) -> str:
    """Return the file name of a compiled network; a run's only one is ``network.so``."""
    safe = "".join(c if c.isalnum() or c in "._@-" else "_" for c in network)
    return "network.so" if count == 1 else f"{safe}.so"
