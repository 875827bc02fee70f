"""Records that need not be replayed: what is left of them makes the same offsets and transactions as all of them."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from penstock.broker.coordination.latest_records import LatestRecords, LoadedRecord, TransactionEnd
from penstock.broker.groups.offset_store import CommittedOffset, OffsetStore
from penstock.protocol.batches import NO_PRODUCER_ID

KEYS = st.sampled_from([b"a", b"b", b"c"])
PRODUCERS = st.sampled_from([1, 2])


class Commit(NamedTuple):
    key: bytes
    value: bytes | None
    producer_id: int = NO_PRODUCER_ID


class End(NamedTuple):
    producer_id: int
    is_commit: bool


EVENTS = st.lists(
    st.one_of(
        st.builds(Commit, KEYS, st.none() | st.just(b"")),
        st.builds(Commit, KEYS, st.just(b"")),
        st.builds(Commit, KEYS, st.just(b""), PRODUCERS),
        st.builds(End, PRODUCERS, st.booleans()),
    ),
    max_size=40,
)


def replay(store: OffsetStore, record: LoadedRecord | TransactionEnd) -> None:
    """As the shard of groups does it."""
    if isinstance(record, TransactionEnd):
        store.end_transaction(record.producer_id, is_commit=record.is_commit)
        return
    assert record.key is not None
    place = "group", record.key.decode(), 0
    committed = CommittedOffset(record.offset, -1, "", 0, -1, None, record.offset)
    if record.value is None:
        store.remove(*place)
    elif record.producer_id == NO_PRODUCER_ID:
        store.put(*place, committed)
    else:
        store.put_pending(record.producer_id, *place, committed)


def state(store: OffsetStore) -> object:
    places = [("group", key, 0) for key in "abc"]
    return [(store.find(*place), store.is_pending(*place)) for place in places]


@given(events=EVENTS, bound=st.integers(1, 50))
def test_what_is_left_makes_the_same_state_now_and_after_open_transactions_end(
    events: list[Commit | End], bound: int
) -> None:
    all_of_them, some = OffsetStore(), OffsetStore()
    latest = LatestRecords(lambda _key: True)
    for offset, event in enumerate(events):
        record: LoadedRecord | TransactionEnd
        if isinstance(event, End):
            record = TransactionEnd(offset, event.producer_id, event.is_commit)
        else:
            record = LoadedRecord(offset, event.key, event.value, event.producer_id)
        replay(all_of_them, record)
        if isinstance(event, Commit) and event.producer_id == NO_PRODUCER_ID:
            latest.add_values([(offset, event.key, event.value)])
        else:
            latest.add(record)
        if len(latest) >= bound:
            for one in latest.take():
                replay(some, one)
    for one in latest.take():
        replay(some, one)
    assert state(some) == state(all_of_them)
    for producer_id in (1, 2):
        for store in (all_of_them, some):
            store.end_transaction(producer_id, is_commit=True)
        assert state(some) == state(all_of_them)


def test_only_the_latest_value_of_a_superseded_key_is_left_and_offsets_keep_their_order() -> None:
    latest = LatestRecords(lambda key: key.startswith(b"latest"))
    latest.add_values([(10, b"latest 1", b"x"), (11, b"other", b"x"), (12, b"latest 2", b"x")])
    latest.add(TransactionEnd(13, 1, True))
    latest.add_values([(14, b"other", b"y"), (15, b"latest 1", b"y"), (16, b"latest 2", None)])
    assert len(latest) == 6
    assert [record.offset for record in latest.take()] == [11, 12, 13, 14, 15, 16]
    assert len(latest) == 0
