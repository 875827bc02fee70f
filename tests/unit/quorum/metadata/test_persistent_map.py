"""The persistent map against a plain dictionary."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.quorum.metadata.persistent_map import PersistentMap

keys = st.integers(0, 1000) | st.text(max_size=3)
changes = st.lists(st.tuples(st.dictionaries(keys, st.integers(), max_size=8), st.lists(keys, max_size=8)), max_size=6)


@pytest.mark.thorough
@given(changes)
def test_evolving_equals_changing_a_dictionary(steps: list[tuple[dict[int | str, int], list[int | str]]]) -> None:
    expected: dict[int | str, int] = {}
    tested: PersistentMap[int | str, int] = PersistentMap()
    for put, remove in steps:
        before = dict(expected)
        unchanged = tested
        for key in remove:
            expected.pop(key, None)
        expected.update(put)
        tested = tested.evolve(put=put, remove=remove)
        assert dict(tested) == expected
        assert len(tested) == len(expected)
        assert dict(unchanged) == before


def test_a_change_shares_what_it_does_not_touch() -> None:
    large = PersistentMap({number: (number,) for number in range(10_000)})
    changed = large.evolve(put={5: (0,)})
    shared = sum(ours is theirs for ours, theirs in zip(large._buckets, changed._buckets, strict=True))
    assert shared == len(large._buckets) - 1


def test_missing_key() -> None:
    assert "a" not in PersistentMap({"b": 1})
    assert PersistentMap({"b": 1}).get("a") is None
