"""Producer epochs, sequences, duplicates and transactions (KIP-98), as Apache Kafka's ProducerStateManager rules."""

import pytest

from penstock.protocol.batches import BatchHeader
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.storage.log.rules.aborted_transaction import AbortedTransaction
from penstock.storage.log.rules.producer_entry import first_sequence_of
from penstock.storage.log.rules.producer_state import CompletedTransaction, EndTransactionMarker, ProducerState
from penstock.storage.log.rules.transaction_verification import UNVERIFIED, TransactionVerification

DAY = 86_400_000
MAX = 2**31 - 1


def header(
    sequence: int = 0,
    *,
    count: int = 1,
    producer_id: int = 1,
    epoch: int = 0,
    transactional: bool = False,
    control: bool = False,
    timestamp: int = 0,
) -> BatchHeader:
    return BatchHeader(
        base_offset=0,
        batch_length=100,
        partition_leader_epoch=0,
        magic=2,
        crc=0,
        attributes=(16 if transactional else 0) | (32 if control else 0),
        last_offset_delta=count - 1,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        record_count=count,
    )


class Producers(ProducerState):
    """Appends as a log does: check, then apply at the end offset."""

    def __init__(self) -> None:
        super().__init__("events-0", DAY)
        self.now_ms = 0

    def append(self, batch: BatchHeader) -> tuple[int, int]:
        duplicate = self.check(batch, self.end_offset, UNVERIFIED)
        if duplicate is not None:
            return duplicate.first_offset, duplicate.last_offset
        first = self.end_offset
        self.apply(batch, first, batch.max_timestamp, self.now_ms)
        self.end_offset = first + batch.last_offset_delta + 1
        return first, self.end_offset - 1

    def end(self, producer_id: int, *, epoch: int = 0, is_abort: bool = False) -> CompletedTransaction | None:
        marker = EndTransactionMarker(is_abort, 7, 5)
        batch = header(-1, producer_id=producer_id, epoch=epoch, transactional=True, control=True)
        completed = self.apply(batch, self.end_offset, 5, self.now_ms, marker)
        self.end_offset += 1
        return completed

    def refusal(self, batch: BatchHeader) -> ErrorCode:
        with pytest.raises(KafkaError) as caught:
            self.append(batch)
        return caught.value.code


@pytest.fixture
def producers() -> Producers:
    return Producers()


def test_unknown_producer_may_begin_anywhere(producers: Producers) -> None:
    assert producers.append(header(42)) == (0, 0)
    assert producers.append(header(43)) == (1, 1)


@pytest.mark.parametrize("sequence", [1, 4, 6, MAX])
def test_gap_in_the_sequence_is_out_of_order(producers: Producers, sequence: int) -> None:
    producers.append(header(0, count=5))
    assert producers.refusal(header(sequence)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_last_five_batches_are_known_as_duplicates(producers: Producers) -> None:
    offsets = [producers.append(header(number * 2, count=2)) for number in range(6)]
    for number in range(1, 6):
        assert producers.append(header(number * 2, count=2)) == offsets[number]
    assert producers.refusal(header(0, count=2)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def begun_at(offset: int, known: Producers) -> Producers:
    """Of a log that begins at `offset`, where another has `known`."""
    begun = Producers()
    begun.load(known.below(offset), {}, offset, 0)
    return begun


def test_log_begun_below_the_batches_in_flight_knows_which_comes_first(producers: Producers) -> None:
    for number in range(9):
        producers.append(header(number, epoch=2))
    begun = begun_at(4, producers)
    assert begun.refusal(header(5, epoch=2)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert begun.refusal(header(4, epoch=1)) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert begun.append(header(4, epoch=2)) == (4, 4)


@pytest.mark.parametrize(("sequence", "epoch"), [(0, 0), (3, 2), (4, 2), (9, 2), (0, 3)])
def test_log_begun_below_all_batches_that_are_remembered_takes_any_first(
    producers: Producers, sequence: int, epoch: int
) -> None:
    for number in range(9):
        producers.append(header(number, epoch=2))
    begun = begun_at(3, producers)
    assert begun.append(header(sequence, epoch=epoch)) == (3, 3)
    assert begun.refusal(header(sequence + 2, epoch=epoch)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_log_begun_below_an_epoch_knows_the_epoch_and_where_it_begins(producers: Producers) -> None:
    producers.append(header(0, epoch=1))
    producers.append(header(0, epoch=2))
    begun = begun_at(1, producers)
    assert begun.refusal(header(1, epoch=2)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert begun.append(header(0, epoch=2)) == (1, 1)


@pytest.mark.parametrize("version", [1, 2])
def test_log_begun_within_an_aborted_transaction_takes_its_marker_again(producers: Producers, version: int) -> None:
    """Should the marker be cut off, its coordinator sends it again: with the epoch that it brought (KIP-890)."""
    epoch = 3 if version == 2 else 2
    for number in range(8):
        producers.append(header(number, epoch=2, transactional=True))
    producers.append(header(0, producer_id=9))
    completed = producers.end(1, epoch=epoch, is_abort=True)
    assert completed is not None
    begun = Producers()
    aborted = AbortedTransaction(1, completed.first_offset, completed.last_offset, completed.first_offset)
    begun.load(producers.below(8, aborted=[aborted]), {}, 8, 0)
    assert begun.last_stable_offset(9) == 0
    begun.check_marker(header(-1, epoch=epoch, transactional=True, control=True), 9, 7, version)
    assert begun.end(1, epoch=epoch, is_abort=True) == CompletedTransaction(1, 0, 8, is_abort=True)


def test_duplicate_has_exactly_the_same_sequences(producers: Producers) -> None:
    producers.append(header(0, count=3))
    assert producers.refusal(header(0, count=2)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producers.refusal(header(1, count=2)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_sequence_goes_on_at_zero_after_the_largest(producers: Producers) -> None:
    producers.append(header(MAX - 1, count=4))
    assert producers.entries[1].last_sequence == 1
    assert producers.append(header(MAX - 1, count=4)) == (0, 3), "a duplicate across the wrap"
    assert producers.append(header(2)) == (4, 4)
    other = header(MAX, producer_id=2)
    producers.append(other)
    assert producers.append(header(0, producer_id=2)) == (6, 6)


def test_stale_epoch_is_refused(producers: Producers) -> None:
    producers.append(header(0, epoch=3))
    assert producers.refusal(header(1, epoch=2)) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_new_epoch_begins_at_sequence_zero_and_forgets_duplicates(producers: Producers) -> None:
    producers.append(header(0, epoch=0))
    assert producers.refusal(header(1, epoch=1)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producers.append(header(0, epoch=1)) == (1, 1)
    assert producers.append(header(0, epoch=1)) == (1, 1)
    assert producers.append(header(1, epoch=1)) == (2, 2)


def test_refused_batch_changes_nothing(producers: Producers) -> None:
    producers.append(header(0))
    producers.refusal(header(9))
    assert producers.append(header(1)) == (1, 1)


def test_check_changes_nothing(producers: Producers) -> None:
    producers.append(header(0))
    assert producers.check(header(1), 1) is None
    assert producers.check(header(1), 1) is None


def test_idle_producers_expire_unless_in_a_transaction(producers: Producers) -> None:
    producers.now_ms = 1000
    producers.append(header(0, producer_id=1))
    producers.append(header(0, producer_id=3, transactional=True))
    producers.now_ms = 2000
    producers.append(header(0, producer_id=2))
    producers.expire(1000 + DAY)
    assert set(producers.entries) == {2, 3}
    assert producers.append(header(77, producer_id=1)) == (3, 3)


@pytest.mark.parametrize("timestamp", [-1, 0, 10 * DAY, 1_000 * DAY], ids=["none", "old", "now", "far ahead"])
def test_timestamps_of_records_do_not_decide_when_a_producer_expires(producers: Producers, timestamp: int) -> None:
    """A backfill must be as idempotent as any other write, and a wrong clock keeps no producer id for ever."""
    producers.now_ms = 10 * DAY
    producers.append(header(0, timestamp=timestamp))
    producers.expire(producers.now_ms + DAY - 1)
    assert set(producers.entries) == {1}
    producers.expire(producers.now_ms + DAY)
    assert not producers.entries


def test_an_append_time_ahead_of_the_clock_counts_from_the_next_look(producers: Producers) -> None:
    producers.now_ms = 1_000 * DAY
    producers.append(header(0))
    producers.expire(10 * DAY)
    producers.expire(11 * DAY - 1)
    assert set(producers.entries) == {1}
    producers.expire(11 * DAY)
    assert not producers.entries


def test_transaction_must_be_verified_before_its_first_batch(producers: Producers) -> None:
    batch = header(0, transactional=True)
    with pytest.raises(KafkaError) as caught:
        producers.check(batch, 0)
    assert caught.value.code == ErrorCode.INVALID_TXN_STATE
    producers.append(batch)
    assert producers.check(header(1, transactional=True), 1) is None, "it is part of an open transaction"


def test_open_transaction_takes_transactional_batches_only(producers: Producers) -> None:
    producers.append(header(0, transactional=True))
    assert producers.refusal(header(1)) == ErrorCode.INVALID_TXN_STATE


def test_last_stable_offset_waits_for_the_marker_to_be_below_the_high_watermark(producers: Producers) -> None:
    assert producers.last_stable_offset(0) == 0
    producers.append(header(0, count=10, producer_id=9))
    producers.append(header(0, producer_id=1, transactional=True))
    producers.append(header(0, producer_id=2, transactional=True))
    assert producers.last_stable_offset(5) == 5
    assert producers.last_stable_offset(12) == 10
    completed = producers.end(1)
    assert completed == CompletedTransaction(1, 10, 12, False)
    assert completed is not None
    assert producers.last_stable_offset_after(completed) == 11
    producers.complete(completed)
    assert producers.last_stable_offset(12) == 10, "the marker at 12 is not replicated"
    assert producers.last_stable_offset(13) == 11
    second = producers.end(2, is_abort=True)
    assert second is not None
    assert second.is_abort
    assert producers.last_stable_offset_after(second) == 14
    producers.complete(second)
    assert producers.last_stable_offset(14) == 14


def test_the_oldest_open_transaction_is_as_old_as_its_last_batch(producers: Producers) -> None:
    assert producers.oldest_open_timestamp() is None
    producers.append(header(0, producer_id=9))
    assert producers.oldest_open_timestamp() is None
    for timestamp, (producer_id, sequence) in enumerate(((1, 0), (2, 0), (1, 1)), start=100):
        producers.append(header(sequence, producer_id=producer_id, transactional=True, timestamp=timestamp))
    assert producers.oldest_open_timestamp() == 102, "the first transaction has gone on"
    completed = producers.end(1)
    assert completed is not None
    producers.complete(completed)
    assert producers.oldest_open_timestamp() == 101


def test_marker_without_a_transaction_completes_nothing(producers: Producers) -> None:
    assert producers.end(5) is None
    assert producers.entries[5].coordinator_epoch == 7


def test_marker_of_a_new_epoch_begins_its_sequences(producers: Producers) -> None:
    producers.append(header(0, transactional=True))
    completed = producers.end(1, epoch=1)
    assert completed is not None
    producers.complete(completed)
    assert producers.refusal(header(1, epoch=0, transactional=True)) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert producers.append(header(0, epoch=1, transactional=True)) == (2, 2)


def test_emptied_control_batch_says_nothing(producers: Producers) -> None:
    assert producers.apply(header(-1, control=True, transactional=True), 0, 0, 0, None) is None
    assert not producers.entries


def test_emptied_batch_of_a_transaction_opens_none(producers: Producers) -> None:
    """Its records were compacted away with its end: of that nothing may be left."""
    emptied = header(0, transactional=True)._replace(record_count=0)
    assert producers.apply(emptied, 0, 0, 0, None) is None
    assert producers.last_stable_offset(5) == 5
    assert producers.entries[emptied.producer_id].last_sequence == emptied.last_sequence


@pytest.mark.parametrize(("last", "delta", "first"), [(9, 4, 5), (0, 0, 0), (1, 3, MAX - 1), (0, 1, MAX)])
def test_first_sequence_of_a_batch(last: int, delta: int, first: int) -> None:
    assert first_sequence_of(last, delta) == first


def begin(producers: Producers, sequence: int = 0, *, epoch: int = 0, bumps: bool = False) -> TransactionVerification:
    verification = producers.begin_verification(1, epoch, sequence, has_epoch_bumps=bumps, now_ms=0)
    assert verification is not None
    return verification


def test_first_batch_of_a_transaction_needs_its_verification_kip_890(producers: Producers) -> None:
    batch = header(0, transactional=True)
    verification = begin(producers)
    for wrong in (None, TransactionVerification(0, 0, has_epoch_bumps=False, begun_ms=0)):
        with pytest.raises(KafkaError) as caught:
            producers.check(batch, 0, wrong)
        assert caught.value.code is ErrorCode.INVALID_TXN_STATE
    assert begin(producers) is verification
    producers.check(batch, 0, verification)
    producers.apply(batch, 0, 0, 0)
    assert producers.begin_verification(1, 0, 1, has_epoch_bumps=False, now_ms=0) is None
    assert producers.check(header(1, transactional=True), 1) is None


def test_end_of_a_transaction_drops_the_verification_of_the_next_batch(producers: Producers) -> None:
    verification = begin(producers)
    producers.end(1, is_abort=True)
    assert not producers.holds_verification(1, verification)
    with pytest.raises(KafkaError) as caught:
        producers.check(header(0, transactional=True), 1, verification)
    assert caught.value.code is ErrorCode.INVALID_TXN_STATE
    assert begin(producers) is not verification


def test_batch_of_an_older_epoch_asks_no_coordinator(producers: Producers) -> None:
    producers.append(header(0, epoch=3, transactional=True))
    producers.end(1, epoch=3)
    with pytest.raises(KafkaError) as caught:
        begin(producers, epoch=2)
    assert caught.value.code is ErrorCode.INVALID_PRODUCER_EPOCH


def test_batch_behind_the_lowest_that_waits_is_out_of_order(producers: Producers) -> None:
    verification = begin(producers, 5)
    begin(producers, 3)
    begin(producers, 7)
    with pytest.raises(KafkaError) as caught:
        producers.check(header(5, transactional=True), 0, verification)
    assert caught.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producers.check(header(3, transactional=True), 0, verification) is None
    # A higher epoch begins anew, a lower one changes nothing.
    begin(producers, 9, epoch=1)
    begin(producers, 2, epoch=0)
    assert producers.check(header(9, epoch=1, transactional=True), 0, verification) is None


def test_transaction_with_an_epoch_of_its_own_begins_at_sequence_0(producers: Producers) -> None:
    verification = begin(producers, 3, bumps=True)
    with pytest.raises(KafkaError) as caught:
        producers.check(header(3, transactional=True), 0, verification)
    assert caught.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_verification_that_leads_nowhere_expires(producers: Producers) -> None:
    verification = begin(producers)
    producers.expire(DAY - 1)
    assert producers.holds_verification(1, verification)
    producers.expire(DAY)
    assert not producers.holds_verification(1, verification)


def marker_refusal(producers: Producers, epoch: int, version: int, coordinator_epoch: int = 7) -> ErrorCode:
    marker = header(-1, epoch=epoch, transactional=True, control=True)
    try:
        producers.check_marker(marker, 9, coordinator_epoch, version)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


@pytest.mark.parametrize(
    ("epoch", "version", "expected"),
    [
        (4, 1, ErrorCode.INVALID_PRODUCER_EPOCH),
        (5, 1, ErrorCode.NONE),
        (6, 1, ErrorCode.NONE),
        (4, 2, ErrorCode.INVALID_PRODUCER_EPOCH),
        (5, 2, ErrorCode.INVALID_PRODUCER_EPOCH),
        (6, 2, ErrorCode.NONE),
    ],
)
def test_marker_of_version_2_has_a_higher_epoch_kip_1228(
    producers: Producers, epoch: int, version: int, expected: ErrorCode
) -> None:
    producers.append(header(0, epoch=5, transactional=True))
    assert marker_refusal(producers, epoch, version) is expected


def test_marker_of_version_2_may_come_again(producers: Producers) -> None:
    producers.append(header(0, epoch=5, transactional=True))
    producers.end(1, epoch=6)
    assert marker_refusal(producers, 6, 2) is ErrorCode.NONE
    assert marker_refusal(producers, 5, 2) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_marker_of_the_last_epoch_there_is_ends_its_transaction(producers: Producers) -> None:
    last = 2**15 - 1
    producers.append(header(0, epoch=last, transactional=True))
    assert marker_refusal(producers, last, 2) is ErrorCode.NONE


def test_marker_of_a_former_coordinator_is_fenced(producers: Producers) -> None:
    assert marker_refusal(producers, 0, 1, coordinator_epoch=0) is ErrorCode.NONE
    producers.append(header(0, transactional=True))
    producers.end(1)
    assert marker_refusal(producers, 0, 1, coordinator_epoch=6) is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert marker_refusal(producers, 0, 1, coordinator_epoch=7) is ErrorCode.NONE


def test_coordinators_batch_has_an_epoch_but_no_sequence(producers: Producers) -> None:
    first = header(-1, transactional=True)
    verification = begin(producers, -1)
    producers.check_epoch(first, 0, verification)
    producers.apply(first, 0, 0, 0)
    producers.check_epoch(first, 1, None)
    with pytest.raises(KafkaError) as caught:
        producers.check_epoch(header(-1, epoch=-1, transactional=True), 1, None)
    assert caught.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
