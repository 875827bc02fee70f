"""JSON objects one after the other are found however the bytes come."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.broker.admin.rules.json_objects import OBJECT_BYTES_MAX, JsonObjects, NoJsonObjectError

TEXT = st.text(alphabet='a"\\{}[]é\n ', max_size=6)
VALUES = st.recursive(
    st.none() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


def all_of(objects: JsonObjects) -> list[object]:
    found = []
    while (one := objects.next_object()) is not None:
        found.append(json.loads(one))
    return found


@given(
    values=st.lists(st.dictionaries(TEXT, VALUES, max_size=3), max_size=3),
    space=st.sampled_from(["", " ", "\n", "\r\n\t "]),
    size=st.integers(min_value=1, max_value=9),
    is_ascii=st.booleans(),
)
def test_objects_are_found_in_pieces_of_any_size(values: list[object], space: str, size: int, is_ascii: bool) -> None:
    stream = space.join(json.dumps(one, ensure_ascii=is_ascii) for one in values).encode()
    objects = JsonObjects()
    found = []
    for start in range(0, len(stream), size):
        objects.feed(stream[start : start + size])
        found += all_of(objects)
    assert found == values
    assert objects.is_between


@pytest.mark.parametrize("stream", [b"[1]", b"5", b'"a"', b"}", b"{}]", b"{} x"])
def test_what_is_no_object_is_refused(stream: bytes) -> None:
    objects = JsonObjects()
    objects.feed(stream)
    with pytest.raises(NoJsonObjectError, match="begins with"):
        all_of(objects)


def test_an_object_without_an_end_is_not_kept() -> None:
    objects = JsonObjects()
    objects.feed(b'{"a": "')
    objects.feed(b"x" * OBJECT_BYTES_MAX)
    with pytest.raises(NoJsonObjectError, match="at most"):
        objects.next_object()


def test_an_object_that_is_cut_off_is_no_end() -> None:
    objects = JsonObjects()
    objects.feed(b'{} {"a": "}')
    assert all_of(objects) == [{}]
    assert not objects.is_between
