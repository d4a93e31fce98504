"""Data at scale, and what larger sizes would take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tools.evidence.files import read_result
from tools.evidence.markdown import table
from tools.evidence.origins import origin
from tools.evidence.pages.page import Page
from tools.evidence.provenance import machine, measured

Row = Mapping[str, Any]

_FORMATS = {
    "costlib": "costlib",
    "pickle": "pickle, as TenSet's",
    "metaschedule_json": "MetaSchedule's JSON, no features",
}


def parts() -> list[str]:
    """Return the page."""
    data, result = read_result("data"), read_result("scale")
    return [
        "Synthetic datasets are streamed in batches that are ready to train on, and LightGBM "
        "trains on them out of core. The columns are time a program, peak memory, and bytes a "
        "program on disk.",
        origin("data"),
        _sizes(data),
        "## Formats",
        "The same programs in other formats, loaded whole. Peak memory includes Python, numpy and "
        "polars. The pickle is the fastest to load, and cannot be read in part, by other tools, or "
        "safely.",
        origin("data"),
        _formats(data),
        *_sizing(result),
        *measured("data", "scale"),
    ]


def _sizes(data: Row) -> str:
    rows = [row for row in data.values() if isinstance(row, dict) and "stream" in row]
    return table(
        ["programs", "streaming", "its memory", "training", "its memory", "on disk"],
        [
            [
                row["stream"]["programs"],
                *(
                    text
                    for phase in ("stream", "train")
                    for text in (
                        f"{row[phase]['us_per_program']:.0f} µs",
                        f"{row[phase]['peak_mib'] / 1024:.1f} GiB",
                    )
                ),
                f"{_bytes(row['generate']):.0f} B",
            ]
            for row in rows
        ],
    )


def _bytes(row: Row) -> float:
    """Return bytes a program, of its measurement and its features."""
    return float(row["measurement_bytes_per_program"] + row["feature_bytes_per_program"])


def _formats(data: Row) -> str:
    names = {"source": f"of `datasets/{data['made_from']}`"}
    rows: list[Sequence[Any]] = []
    for size, row in data.items():
        if not isinstance(row, dict) or "write_formats" not in row:
            continue
        written = row["write_formats"]
        for name, words in _FORMATS.items():
            loaded = row[f"load_{name}"]
            disk = _bytes(written) if name == "costlib" else written[f"{name}_bytes_per_program"]
            rows.append(
                [
                    f"{loaded['programs']:,} {names.get(size, 'synthetic ones')}",
                    words,
                    f"{disk:.0f} B",
                    f"{loaded['us_per_program']:.0f} µs",
                    f"{loaded['peak_mib']} MiB",
                ]
            )
    return table(["programs", "format", "on disk", "loading", "peak memory"], rows)


def _sizing(result: Row) -> list[str]:
    tenset, thousand = result["extrapolated"]["tenset"], result["extrapolated"]["fleet"]
    cluster, fleet = result["cluster"], result["fleet"]
    slopes = [
        [words, *result[name]["records"], *result[name]["seconds"], result[name]["ms_per_record"]]
        for name, words in (
            ("import", "importing, on one core"),
            ("features", "computing features, on all cores"),
        )
    ]
    return [
        "## Sizing",
        f"Measured at two sizes on the {result['cores']} cores of {machine(result['hardware'])}; "
        "the slope is what one record more takes.",
        origin("scale"),
        table(["stage", "records", "and", "seconds", "and", "ms a record"], slopes),
        f"Two Dask workers of one core each train {cluster['trees']} trees on few programs "
        f"{cluster['two_workers_speed']:.2f} times as fast as one; more workers pay with millions "
        "of programs.",
        table(
            ["Dask workers", *(f"run {n}, s" for n in range(1, len(cluster["seconds"]["1"]) + 1))],
            [[int(workers), *taken] for workers, taken in cluster["seconds"].items()],
        ),
        f"A program of `{fleet['task']}`, on this machine and on a device behind a tracker:",
        table(
            ["part", "seconds"],
            [
                ["building it, on one core", f"{fleet['build_core_s']:.3f}"],
                ["running and timing it here", f"{fleet['run_s']:.3f}"],
                ["running and timing it on the device", f"{fleet['run_on_device_s']:.3f}"],
                ["what the link adds, the median", f"{fleet['link_s']:.4f}"],
                ["what the client computes", f"{fleet['client_core_s']:.4f}"],
            ],
        ),
        "## Extrapolated",
        f"In a straight line from there; nobody has run it at that size. TenSet's "
        f"{tenset['records']:,} records on this machine:",
        origin("data"),
        origin("scale"),
        table(
            ["stage", "takes", "what bounds it"],
            [
                ["import MetaSchedule logs", f"{tenset['import_h']:.0f} h", _BOUNDS["import"]],
                ["compute features", f"{tenset['features_h']:.0f} h", _BOUNDS["features"]],
                ["stream all of it once", f"{tenset['stream_h']:.1f} h", "the disk"],
                [
                    f"train {tenset['trees']} trees out of core",
                    f"{tenset['train_h']:.0f} h, {tenset['train_peak_gib']:.0f} GiB",
                    _BOUNDS["train"],
                ],
                ["keep measurements and features", f"{tenset['disk_gib']:.0f} GiB", "the disk"],
            ],
        ),
        f"{thousand['devices']:,} devices like this machine:",
        table(
            ["", ""],
            [
                ["programs a second", thousand["programs_per_s"]],
                ["hours for TenSet's number of programs", f"{thousand['tenset_h']:.1f}"],
                ["cores that build", thousand["builder_cores"]],
                ["cores that talk to the devices", thousand["client_cores"]],
            ],
        ),
        "A collector keeps at most a batch of devices busy, so each group of devices needs a key "
        "and a collector of its own; all of them fill one dataset.",
    ]


_BOUNDS = {
    "import": "one core replays and checks every record: split the logs, import each into a "
    "dataset of its own, then `costlib dataset merge`",
    "features": "replaying and lowering, on all cores of one machine",
    "train": "LightGBM's bins in memory; with Dask the rows are spread over the workers",
}

PAGE = Page("scale", "Data at scale, and sizing", parts, ("data", "scale"))
