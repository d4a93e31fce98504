"""A dataset that is only read, though what is derived from it has to be written somewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from costlib.data.dataset import Dataset
from costlib.errors import DatasetError
from costlib.scratch import ScratchFolder


@contextmanager
def borrowed(dataset: Dataset) -> Iterator[Dataset]:
    """Yield a dataset of links to another's files: nothing that is written reaches that one.

    Features that are there already are made use of; new ones are gone in the end.
    """
    with ScratchFolder() as folder, dataset.reading():
        copy = folder / "dataset"
        for file in dataset.path.rglob("*"):
            name = file.relative_to(dataset.path)
            if file.is_file() and not any(part.startswith(".") for part in name.parts):
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                (copy / name).symlink_to(file.resolve())
        try:
            yield Dataset.open(copy)
        except DatasetError as error:
            raise DatasetError(str(error).replace(str(copy), str(dataset.path))) from error
