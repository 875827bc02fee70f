"""The leader epoch cache (KIP-101, KIP-279, KIP-320)."""

import pytest

from penstock.protocol.errors import CorruptData
from penstock.protocol.ids import LeaderEpoch
from penstock.storage.log.leader_epochs import LeaderEpochs, decode_leader_epochs, encode_leader_epochs


def test_epoch_is_assigned_once() -> None:
    epochs = LeaderEpochs()
    assert epochs.latest_epoch == -1
    epochs.assign(2, 6)
    epochs.assign(2, 9)
    assert epochs.entries == ((2, 6),)


@pytest.mark.parametrize(
    ("epoch", "start", "left"),
    [
        (4, 11, ((2, 6), (3, 10), (4, 11))),
        (4, 10, ((2, 6), (4, 10))),
        (4, 6, ((4, 6),)),
        (3, 8, ((2, 6), (3, 8))),
        (2, 12, ((2, 12),)),
        (1, 20, ((1, 20),)),
    ],
)
def test_new_entry_removes_what_contradicts_it(epoch: int, start: int, left: tuple[tuple[int, int], ...]) -> None:
    epochs = LeaderEpochs(((2, 6), (3, 10)))
    epochs.assign(epoch, start)
    assert epochs.entries == left
    assert epochs.latest_epoch == epoch


@pytest.mark.parametrize(
    ("epoch", "answer"),
    [(-1, None), (-2, (-2, 5)), (0, (0, 5)), (2, (2, 10)), (3, (2, 10)), (4, (4, 20)), (5, (5, 99)), (6, None)],
)
def test_end_offset_of_an_epoch_is_the_start_of_the_next(epoch: int, answer: tuple[int, int] | None) -> None:
    assert LeaderEpochs(((2, 5), (4, 10), (5, 20))).end_offset_for(LeaderEpoch(epoch), 99) == answer


def test_no_epoch_has_an_end_when_none_is_known() -> None:
    assert LeaderEpochs().end_offset_for(LeaderEpoch(0), 10) is None
    assert LeaderEpochs().earliest_epoch() is None


@pytest.mark.parametrize(
    ("offset", "left"),
    [
        (4, ((2, 5), (3, 10), (4, 15))),
        (5, ((2, 5), (3, 10), (4, 15))),
        (7, ((2, 7), (3, 10), (4, 15))),
        (10, ((3, 10), (4, 15))),
        (99, ((4, 99),)),
    ],
)
def test_truncation_from_start_keeps_the_epoch_that_reaches_over(
    offset: int, left: tuple[tuple[int, int], ...]
) -> None:
    epochs = LeaderEpochs(((2, 5), (3, 10), (4, 15)))
    epochs.truncate_from_start(offset)
    assert epochs.entries == left


@pytest.mark.parametrize(
    ("offset", "left"), [(16, ((2, 5), (3, 15))), (15, ((2, 5),)), (6, ((2, 5),)), (5, ()), (0, ())]
)
def test_truncation_from_end_removes_epochs_that_start_there(offset: int, left: tuple[tuple[int, int], ...]) -> None:
    epochs = LeaderEpochs(((2, 5), (3, 15)))
    epochs.truncate_from_end(offset)
    assert epochs.entries == left
    assert epochs.latest_epoch == (left[-1][0] if left else -1)


@pytest.mark.parametrize(
    ("from_offset", "entries", "left"),
    [
        (0, ((2, 5), (3, 7)), ((2, 5), (3, 7), (6, 20))),
        (10, ((4, 10),), ((1, 0), (2, 5), (4, 10), (6, 20))),
        (10, ((2, 10), (5, 15)), ((1, 0), (2, 5), (5, 15), (6, 20))),
        # What contradicts them goes.
        (10, ((1, 10),), ((1, 0), (6, 20))),
    ],
)
def test_what_is_known_of_a_range_is_replaced(
    from_offset: int, entries: tuple[tuple[int, int], ...], left: tuple[tuple[int, int], ...]
) -> None:
    epochs = LeaderEpochs(((1, 0), (2, 5), (3, 12), (6, 20)))
    epochs.replace_below(20, entries, from_offset=from_offset)
    assert epochs.entries == left


def test_file_is_kafkas_checkpoint() -> None:
    entries = ((0, 0), (7, 1234))
    data = encode_leader_epochs(entries)
    assert data == b"0\n2\n0 0\n7 1234\n"
    assert decode_leader_epochs(data, "f") == entries
    assert decode_leader_epochs(b"0\n0\n", "f") == ()


@pytest.mark.parametrize(
    "data", [b"", b"0\n", b"1\n0\n", b"0\n2\n1 1\n", b"0\n1\nx 1\n", b"\xff\n0\n", b"0\n1\n7 12", b"0\n0"]
)
def test_broken_file_is_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptData):
        decode_leader_epochs(data, "f")


@pytest.mark.parametrize(("end_offset", "count"), [(0, 0), (5, 0), (6, 1), (10, 1), (15, 2), (16, 3)])
def test_epoch_without_a_batch_is_not_below_the_end(end_offset: int, count: int) -> None:
    epochs = LeaderEpochs(((2, 5), (3, 10), (4, 15)))
    assert epochs.entries_below(end_offset) == epochs.entries[:count]


def test_a_log_vouches_for_epochs_that_it_has_batches_of() -> None:
    epochs = LeaderEpochs(((2, 5), (4, 10)))
    assert [epoch for epoch in range(5) if epochs.vouches_for(LeaderEpoch(epoch))] == [2, 3, 4]
    assert not LeaderEpochs().vouches_for(LeaderEpoch(0))


@pytest.mark.parametrize(("log_start", "vouched"), [(9, [2, 3, 4]), (10, [2, 4]), (11, [4])])
def test_a_log_vouches_for_the_epoch_of_the_last_batch_that_it_deleted(log_start: int, vouched: list[int]) -> None:
    epochs = LeaderEpochs(((1, 0), (2, 5), (4, 10)))
    epochs.truncate_from_start(log_start)
    assert [epoch for epoch in range(5) if epochs.vouches_for(LeaderEpoch(epoch))] == vouched
    again = LeaderEpochs(epochs.entries_below(99))
    again.truncate_from_start(log_start)
    assert again.entries == epochs.entries
    assert [epoch for epoch in range(5) if again.vouches_for(LeaderEpoch(epoch))] == vouched


def test_a_log_that_begins_anew_vouches_for_nothing_before() -> None:
    for is_cut in (False, True):
        epochs = LeaderEpochs(((2, 5), (4, 10)))
        epochs.truncate_from_start(10)
        if is_cut:
            epochs.truncate_from_end(9)
        else:
            epochs.clear()
        epochs.assign(4, 10)
        assert not epochs.vouches_for(LeaderEpoch(2))


def test_the_epoch_before_a_log_start_is_known_when_the_next_one_begins_there() -> None:
    epochs = LeaderEpochs(((1, 0),))
    epochs.truncate_from_start(6)
    epochs.assign(3, 6)
    epochs.assign(4, 6)
    assert epochs.entries == ((4, 6),)
    assert [epoch for epoch in range(5) if epochs.vouches_for(LeaderEpoch(epoch))] == [1, 4]
    assert epochs.entries_below(7) == ((1, 5), (4, 6))
