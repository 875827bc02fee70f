"""The newest events, and readers that resume."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.protocol.ids import NodeId
from penstock.quorum.metadata.cluster_events import (
    BrokerFenced,
    ClusterEvent,
    ConfigChange,
    ConfigsChanged,
    Gap,
)
from penstock.quorum.metadata.event_id import LAST_NUMBER, EventId
from penstock.quorum.metadata.event_ring import EventRing

BEGINNING = EventId(-1, LAST_NUMBER)


def event(offset: int, index: int = 0) -> ClusterEvent:
    return ClusterEvent(id=EventId(offset, index), timestamp_ms=offset, change=BrokerFenced(broker_id=NodeId(1)))


def read_all(ring: EventRing, last_id: EventId) -> list[ClusterEvent]:
    found = []
    while (one := ring.next_after(last_id)) is not None:
        assert one.id > last_id
        found.append(one)
        last_id = one.id
    return found


def test_a_reader_resumes_behind_the_event_that_it_has() -> None:
    ring = EventRing()
    for offset in (3, 5, 9):
        ring.append(event(offset))
    assert [one.id.offset for one in read_all(ring, BEGINNING)] == [3, 5, 9]
    assert [one.id.offset for one in read_all(ring, EventId(5, 0))] == [9]
    assert [one.id.offset for one in read_all(ring, EventId(4, 7))] == [5, 9]
    assert read_all(ring, EventId(100, 0)) == []


def test_a_reader_that_comes_too_late_is_told_of_a_gap_once() -> None:
    ring = EventRing(events_max=2)
    for offset in range(5):
        ring.append(event(offset))
    first, *rest = read_all(ring, EventId(0, 0))
    assert (first.id, first.change) == (EventId(2, 0), Gap())
    assert [one.id.offset for one in rest] == [3, 4]
    assert [one.id.offset for one in read_all(ring, EventId(2, 0))] == [3, 4]


def test_what_a_snapshot_stands_for_is_a_gap() -> None:
    ring = EventRing()
    ring.append(event(1))
    ring.restart(50, 7)
    ring.append(event(51))
    first, second = read_all(ring, EventId(1, 0))
    assert (first.change, first.id, first.timestamp_ms) == (Gap(), EventId(50, LAST_NUMBER), 7)
    assert second.id == EventId(51, 0)


def test_memory_has_a_bound_in_bytes_too() -> None:
    ring = EventRing(bytes_max=20_000)
    for offset in range(100):
        change = ConfigsChanged(
            resource_type=2, resource_name="t", count=1, changes=(ConfigChange(name="a", value="x" * 1_000),)
        )
        ring.append(ClusterEvent(id=EventId(offset, 0), timestamp_ms=0, change=change))
    assert 10 < len(ring) < 20


@given(st.lists(st.integers(0, 3), max_size=30), st.integers(1, 10), st.integers(-1, 40), st.integers(0, 3))
def test_a_reader_misses_nothing_without_a_gap(counts: list[int], events_max: int, offset: int, index: int) -> None:
    ring = EventRing(events_max=events_max)
    everything = [event(place, one) for place, count in enumerate(counts) for one in range(count)]
    for one in everything:
        ring.append(one)
    expected = [one for one in everything if one.id > (offset, index)]
    found = read_all(ring, EventId(offset, index))
    if found and isinstance(found[0].change, Gap):
        assert found[1:] == [one for one in expected if one.id > found[0].id]
    else:
        assert found == expected


@pytest.mark.parametrize("text", ["", "7", "7.", ".7", "a.b", "1.2.3", "1.-2"])
def test_what_is_no_id_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        EventId.parse(text)


def test_ids_are_read_as_they_are_written() -> None:
    for one in (EventId(12, 3), BEGINNING):
        assert EventId.parse(str(one)) == one
