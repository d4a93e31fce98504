from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from costlib.identity import ID_LENGTH, content_id

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda values: st.lists(values) | st.dictionaries(st.text(), values),
    max_leaves=8,
)


@given(JSON)
def test_ids_are_short_hexadecimal_and_repeatable(value: object) -> None:
    found = content_id(value)
    assert len(found) == ID_LENGTH
    assert int(found, 16) >= 0
    assert found == content_id(value)


def test_known_value() -> None:
    # Datasets on disk carry such ids: this must never change.
    assert content_id("a", [1, 2], {"b": None}) == "2718a3629e08d924"


def test_order_of_keys_does_not_matter_and_of_lists_does() -> None:
    assert content_id({"a": 1, "b": 2}) == content_id({"b": 2, "a": 1})
    assert content_id([1, 2]) != content_id([2, 1])
