"""Models of LightGBM's trees, and their text form, read with care.

LightGBM trusts what it reads: a changed number can make it abort or touch memory that is not its
own. So a file is parsed here, each tree is checked to be one, and LightGBM is given a text that is
written anew from what was understood.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from pydantic import BaseModel

from costlib.features.batch import FeatureBatch
from costlib.models.base import CostModel, load_columns, reading, save_columns
from costlib.models.boosting import lgb
from costlib.models.training_curve import tell_progress

_MOST_CLASSES = 1_000
_MOST_COLUMNS = 1_000_000
_SIZES = {"num_class", "num_tree_per_iteration", "max_feature_idx"}
_NUMBERS = re.compile(r"[-+0-9.eE ]*")
_NUMERICAL_SPLIT = 0b1110
"""Bits of ``decision_type`` that a numerical split may have: where missing values go."""

_ARRAYS = {
    "split_feature": "int64",
    "threshold": "float64",
    "decision_type": "int64",
    "left_child": "int64",
    "right_child": "int64",
    "leaf_value": "float64",
}
"""What scoring needs of a tree: a number for each inner node, and for each leaf."""


_FAR = {"inf": "1e300", "-inf": "-1e300"}
"""For thresholds that only tell apart whether a value is missing; no feature is as large."""

_GAIN = "split_gain"
"""What each inner node gained in training; scoring does without it."""


_Config = TypeVar("_Config", bound=BaseModel)


class TreeModel(CostModel, Generic[_Config]):
    """A cost model of trees; its files are their text form and its settings.

    Attributes
    ----------
    title
        What it is called where its files are damaged.
    config_type
        Of its settings.
    columns
        The columns of context that it was trained with, empty if they had no names.
    """

    title: ClassVar[str]
    config_type: type[_Config]

    def __init__(self, config: _Config | None = None) -> None:
        self.config = config or self.config_type()
        self.columns: tuple[str, ...] = ()
        self._booster: lgb.Booster | None = None

    @property
    def booster(self) -> lgb.Booster:
        """The trees, once there are any."""
        assert self._booster is not None, "fit or load the model first"
        return self._booster

    def seen(self, batch: FeatureBatch) -> FeatureBatch:
        """Return what the model knows of programs."""
        return batch.known_by(self.columns)

    def gains(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return what splits by each column gained in training, float64 `columns`."""
        return np.asarray(self.booster.feature_importance("gain"), "float64")

    def save(self, folder: Path) -> None:
        """See :meth:`CostModel.save`."""
        save_trees(self.booster, folder / "model.txt")
        save_columns(folder, self.columns)
        (folder / "config.json").write_text(self.config.model_dump_json(indent=2) + "\n")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """See :meth:`CostModel.load`."""
        with reading(folder, f"{cls.title} model"):
            config = (folder / "config.json").read_bytes()
            model = cls(cls.config_type.model_validate_json(config))
            model._booster = load_trees(folder / "model.txt")
            model.columns = load_columns(folder, cls.view)
        return model


def tree_parameters(config: Any, seed: int) -> dict[str, Any]:
    """Return what LightGBM is told whatever it is to learn."""
    return {
        "num_leaves": config.num_leaves,
        "learning_rate": config.learning_rate,
        "seed": seed,
        "deterministic": True,
        "verbosity": -1,
    }


def grow(what: str, parameters: dict[str, Any], data: lgb.Dataset, rounds: int, **more: Any) -> Any:
    """Train, and tell how far it is."""

    def tell(environment: Any) -> None:
        grown = environment.iteration - environment.begin_iteration + 1
        tell_progress(f"growing trees: {what}", grown, rounds)

    callbacks = [tell, *more.pop("callbacks", ())]
    return lgb.train(parameters, data, num_boost_round=rounds, callbacks=callbacks, **more)


def save_trees(booster: lgb.Booster, file: Path) -> None:
    """Write trees; :func:`load_trees` brings them back bit for bit."""
    file.write_text(booster.model_to_string())


def load_trees(file: Path) -> lgb.Booster:
    """Read trees.

    Raises
    ------
    OSError
        The file cannot be read.
    ValueError
        It holds no trees of numerical splits.
    """
    try:
        return lgb.Booster(model_str=_checked(file.read_text("utf-8")))
    except lgb.basic.LightGBMError as error:
        raise ValueError(str(error)) from None


def added_up(*parts: tuple[lgb.Booster, float]) -> lgb.Booster:
    """Return trees that score as the sum of several boosters', each times its weight.

    The boosters have one class and the same columns.
    """
    texts = [_checked(booster.model_to_string(), weight) for booster, weight in parts]
    trees = [tree for text in texts for tree in _blocks(text)[1]]
    return lgb.Booster(model_str=_written(_sizes(_blocks(texts[0])[0]), trees))


def _checked(text: str, weight: float = 1.0) -> str:
    header, blocks = _blocks(text)
    sizes = _sizes(header)
    if len(blocks) % sizes["num_class"]:
        raise ValueError("sizes in the header that do not fit")
    columns = sizes["max_feature_idx"] + 1
    return _written(sizes, [_checked_tree(_fields(block), columns, weight) for block in blocks])


def _blocks(text: str) -> tuple[str, list[str]]:
    """Cut a text into its header and its trees."""
    body, end, _ = text.partition("\nend of trees")
    header, *blocks = re.split(r"\nTree=\d+\n", body)
    if not (end and blocks and text.startswith("tree\n")):
        raise ValueError("no LightGBM trees")
    return header, blocks


def _sizes(header: str) -> dict[str, int]:
    sizes = {key: int(value) for key, value in _fields(header).items() if key in _SIZES}
    if sizes.keys() != _SIZES:
        raise ValueError("a header without its sizes")
    classes, columns = sizes["num_class"], sizes["max_feature_idx"] + 1
    if not (
        1 <= classes <= _MOST_CLASSES
        and sizes["num_tree_per_iteration"] == classes
        and 1 <= columns <= _MOST_COLUMNS
    ):
        raise ValueError("sizes in the header that do not fit")
    return sizes


def _written(sizes: dict[str, int], trees: Sequence[str]) -> str:
    classes, columns = sizes["num_class"], sizes["max_feature_idx"] + 1
    blocks = [f"Tree={number}\n{tree}\n" for number, tree in enumerate(trees)]
    lines = [
        "tree",
        "version=v4",
        f"num_class={classes}",
        f"num_tree_per_iteration={classes}",
        "label_index=0",
        f"max_feature_idx={columns - 1}",
        "feature_names=" + " ".join(f"Column_{column}" for column in range(columns)),
        "feature_infos=" + " ".join(["[-inf:inf]"] * columns),
        "tree_sizes=" + " ".join(str(len(block)) for block in blocks),
        "",
        "".join(blocks) + "end of trees\n",
    ]
    return "\n".join(lines)


def _checked_tree(fields: dict[str, str], columns: int, weight: float) -> str:
    """Return a tree's lines if its nodes hang together, each reached once.

    Its leaves are multiplied with the weight.
    """
    leaves = int(fields.get("num_leaves", "0"))
    bounds = fields.get("threshold", "").split()
    fields = fields | {"threshold": " ".join(_FAR.get(bound, bound) for bound in bounds)}
    arrays = {name: _numbers(fields.get(name, ""), dtype) for name, dtype in _ARRAYS.items()}
    if (
        leaves < 1
        or fields.get("num_cat") != "0"
        or fields.get("is_linear", "0") != "0"
        or any(len(array) != leaves - (name != "leaf_value") for name, array in arrays.items())
    ):
        raise ValueError("a tree that is cut off, or has other than numerical splits")
    nodes = np.arange(leaves - 1)
    left, right = arrays["left_child"], arrays["right_child"]
    children = np.concatenate([left, right])
    ends = np.arange(leaves if leaves > 1 else 0)
    if not (
        np.array_equal(np.sort(children[children >= 0]), nodes[1:])
        and np.array_equal(np.sort(~children[children < 0]), ends)
        and ((left < 0) | (left > nodes)).all()
        and ((right < 0) | (right > nodes)).all()
        and ((arrays["split_feature"] >= 0) & (arrays["split_feature"] < columns)).all()
        and (arrays["decision_type"] & ~_NUMERICAL_SPLIT == 0).all()
    ):
        raise ValueError("a tree whose nodes do not hang together")
    if weight != 1:
        scaled = weight * arrays["leaf_value"]
        fields = fields | {"leaf_value": " ".join(map(repr, scaled.tolist()))}
    lines = [f"num_leaves={leaves}", "num_cat=0"]
    lines += [f"{name}={fields.get(name, '')}" for name in _ARRAYS]
    if len(_numbers(fields.get(_GAIN, ""), "float64")) == leaves - 1:
        lines.append(f"{_GAIN}={fields.get(_GAIN, '')}")
    return "\n".join([*lines, "is_linear=0", "shrinkage=1", "", ""])


def _numbers(line: str, dtype: str) -> Any:
    if not _NUMBERS.fullmatch(line):
        raise ValueError("something in a tree that is no number")
    array = np.array(line.split(), dtype)
    if not np.isfinite(array).all():
        raise ValueError("a number in a tree that is not finite")
    return array


def _fields(block: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
