"""What a dataset was merged or sampled from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from costlib.data.dataset import Dataset
from costlib.data.manifest import PROVENANCE
from costlib.errors import DatasetError
from costlib.files import write_json
from costlib.frozen import Frozen
from costlib.remote.address import is_url


class Source(Frozen):
    """A dataset that another one was made from.

    Attributes
    ----------
    name
        Its address, or its folder's name.
    created, costlib_version, tvm_version
        As in its manifest; ``created`` tells it from all others.
    hardware
        Ids of what it was measured on.
    measurements
        How many it held then, those of its held-out tasks included.
    """

    name: str
    created: str
    costlib_version: str
    tvm_version: str | None
    hardware: tuple[str, ...]
    measurements: int


_SOURCES = TypeAdapter(tuple[Source, ...])


def read_sources(dataset: Dataset) -> tuple[Source, ...]:
    """Return what a dataset was made from; nothing if it was measured or imported.

    Raises
    ------
    DatasetError
        What it says of that is damaged.
    """
    file = dataset.path / PROVENANCE
    if not file.exists():
        return ()
    try:
        return _SOURCES.validate_json(file.read_bytes())
    except (OSError, ValidationError) as error:
        reason = str(error).partition("\n")[0]
        raise DatasetError(f"{file} cannot be read: {reason}; merge anew") from None


def note_sources(target: Dataset, paths: Sequence[str | Path], sources: Sequence[Dataset]) -> None:
    """Note in a dataset what is copied into it.

    A source that was itself made from others stands for those. One that is copied again has its
    latest state noted.

    Parameters
    ----------
    target
        The dataset.
    paths, sources
        The datasets as they were named, and as they were opened.
    """
    known = {source.created: source for source in read_sources(target)}
    for path, dataset in zip(paths, sources, strict=True):
        for source in read_sources(dataset) or (_described(path, dataset),):
            known[source.created] = source
    content = [source.model_dump(mode="json") for source in known.values()]
    write_json(target.path / PROVENANCE, content, target.scratch)


def _described(path: str | Path, dataset: Dataset) -> Source:
    counts: Counter[str] = Counter()
    for one in (dataset, dataset.held_out()):
        if one is not None:
            held = one.scan().group_by("hardware").len().collect()
            counts.update(dict(held.iter_rows()))
    return Source(
        name=str(path) if is_url(path) else Path(path).resolve().name,
        created=dataset.info.created,
        costlib_version=dataset.info.costlib_version,
        tvm_version=dataset.info.tvm_version,
        hardware=tuple(sorted(counts)),
        measurements=counts.total(),
    )
