from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from costlib.models.boosting import lgb
from costlib.models.trees import added_up, load_trees, save_trees

COLUMNS = 5


def trained(objective: str) -> lgb.Booster:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, COLUMNS))
    rows[::7, 1] = np.nan
    labels = (rows[:, 0] > 0) + (rows[:, 2] > 0.5)
    parameters = {"objective": objective, "verbosity": -1, "num_leaves": 7, "num_threads": 1}
    parameters |= {"num_class": 3} if objective == "multiclass" else {}
    data = lgb.Dataset(rows, labels.astype(float), group=[100] * 3)
    return lgb.train(parameters, data, num_boost_round=5)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("trees") / "model.txt"
    save_trees(trained("l2"), file)
    return file.read_text()


@pytest.mark.parametrize("objective", ["l2", "lambdarank", "multiclass"])
def test_scores_come_back_bit_for_bit(tmp_path: Path, objective: str) -> None:
    booster = trained(objective)
    save_trees(booster, tmp_path / "model.txt")
    rows = np.random.default_rng(1).normal(size=(50, COLUMNS))
    rows[3] = np.nan
    again = load_trees(tmp_path / "model.txt")
    np.testing.assert_array_equal(
        again.predict(rows, raw_score=True), booster.predict(rows, raw_score=True)
    )


def test_what_counts_is_that_a_value_is_missing(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(300, 2))
    rows[::2, 1] = np.nan
    parameters = {"objective": "l2", "verbosity": -1, "num_threads": 1}
    booster = lgb.train(parameters, lgb.Dataset(rows, np.isnan(rows[:, 1])), num_boost_round=5)
    assert "inf" in booster.model_to_string().partition("end of trees")[0].partition("Tree=0")[2]
    save_trees(booster, tmp_path / "model.txt")
    again = load_trees(tmp_path / "model.txt")
    np.testing.assert_array_equal(again.predict(rows), booster.predict(rows))
    assert np.ptp(again.predict(rows)) > 0.1


def test_scores_add_up(tmp_path: Path) -> None:
    one, other = trained("l2"), trained("lambdarank")
    rows = np.random.default_rng(1).normal(size=(50, COLUMNS))
    rows[3] = np.nan
    expected = one.predict(rows) - 0.5 * other.predict(rows, raw_score=True)
    both = added_up((one, 1.0), (other, -0.5))
    np.testing.assert_allclose(both.predict(rows), expected, rtol=1e-12)
    save_trees(both, tmp_path / "model.txt")
    np.testing.assert_array_equal(
        load_trees(tmp_path / "model.txt").predict(rows), both.predict(rows)
    )


def test_a_single_leaf(tmp_path: Path) -> None:
    rows = np.zeros((40, 2))
    booster = lgb.train({"verbosity": -1}, lgb.Dataset(rows, np.ones(40)), num_boost_round=2)
    save_trees(booster, tmp_path / "model.txt")
    assert load_trees(tmp_path / "model.txt").predict(rows).tolist() == [1.0] * 40


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("left_child=1 ", "left_child=0 "),
        ("left_child=1 ", "left_child=900000 "),
        ("split_feature=", "split_feature=77777 "),
        ("num_leaves=7", "num_leaves=1000000000"),
        ("max_feature_idx=4", "max_feature_idx=0"),
        ("decision_type=2", "decision_type=1"),
        ("leaf_value=", "leaf_value=nan "),
        ("end of trees", "end"),
        ("num_class=1", "num_class=99999999999999999999"),
    ],
)
def test_trees_that_do_not_hang_together(tmp_path: Path, text: str, old: str, new: str) -> None:
    assert old in text
    (tmp_path / "model.txt").write_text(text.replace(old, new, 1))
    with pytest.raises(ValueError, match=r"."):
        load_trees(tmp_path / "model.txt")


@given(
    place=st.floats(0, 1, exclude_max=True),
    removed=st.integers(0, 40),
    added=st.text("0123456789-. =e\nTn_", max_size=4) | st.text(max_size=3),
)
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=500, deadline=None
)
def test_whatever_is_changed_is_refused_or_scores(
    tmp_path: Path, text: str, place: float, removed: int, added: str
) -> None:
    start = int(place * len(text))
    (tmp_path / "model.txt").write_text(text[:start] + added + text[start + removed :], "utf-8")
    try:
        booster = load_trees(tmp_path / "model.txt")
    except ValueError:
        return
    assert len(booster.predict(np.zeros((2, booster.num_feature())), num_threads=1)) == 2
