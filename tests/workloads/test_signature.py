from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costlib.errors import InputError
from costlib.workloads.signature import Signature, TensorSpec, built, flat_signature, leaf

SPECS = [TensorSpec(name=f"x{i}", dtype="float32", shape=(i + 1,)) for i in range(3)]
NESTED = Signature(
    inputs=tuple(SPECS),
    outputs=tuple(SPECS),
    arguments={"tuple": [leaf(0), {"list": [leaf(1), {"constant": None}]}]},
    keywords={"dict": {"mask": leaf(2)}},
    result={"dict": {"a": leaf(1), "rest": {"tuple": [leaf(0), leaf(2), {"constant": 3}]}}},
)


def test_arguments_are_flattened_and_results_built():
    assert NESTED.flatten(("a", ["b", None]), {"mask": "c"}) == ["a", "b", "c"]
    assert NESTED.flatten(("a", ["b", None], "c"), {}) == ["a", "b", "c"]
    assert NESTED.unflatten("abc") == {"a": "b", "rest": ("a", "c", 3)}
    assert Signature.model_validate_json(NESTED.model_dump_json()) == NESTED


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        (("a",), {"mask": "c"}, "arguments: a tuple of 2 is wanted; given: 1"),
        (("a", "b"), {"mask": "c"}, r"arguments\[1\]: a list of 2 is wanted; given: str"),
        (("a", ["b", 1]), {"mask": "c"}, r"\[1\]: None is part of the network; 1 was given"),
        (("a", ["b", None]), {}, "named arguments: wanted are mask; given: none"),
        (("a", ["b", None], "c", "d"), {}, "4 arguments were given; the network takes x0: float32"),
    ],
)
def test_wrong_arguments_are_named(args, kwargs, message):
    with pytest.raises(InputError, match=message):
        NESTED.flatten(args, kwargs)


def test_flat_signatures_take_and_return_tensors():
    assert flat_signature(SPECS, SPECS[:1]).unflatten("a") == "a"
    assert flat_signature(SPECS, SPECS).unflatten("abc") == ("a", "b", "c")


TREES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers()).map(lambda value: {"constant": value}),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: {"list": items}),
        st.lists(inner, max_size=3).map(lambda items: {"tuple": items}),
        st.dictionaries(st.text(max_size=3), inner, max_size=3).map(lambda items: {"dict": items}),
    ),
    max_leaves=8,
)


@given(TREES)
def test_what_is_built_is_taken_again(tree):
    signature = Signature(inputs=(), outputs=(), arguments={"tuple": [tree]}, result=tree)
    assert signature.flatten((built(tree, ()),), {}) == []
