"""Records that are encoded before their batch is made."""

from penstock.protocol.records import EncodedRecords, Record, batch_of, write_batch

NOW_MS = 1_700_000_000_000
HEADER_BYTES = 61


def test_a_batch_of_encoded_records_is_the_batch_of_these_records() -> None:
    records = [Record(number, NOW_MS, b"key", b"value" * number) for number in range(200)]
    encoded = EncodedRecords(write_batch(records)[HEADER_BYTES:], len(records))
    assert batch_of(encoded, NOW_MS) == write_batch(records)
    transactional = write_batch(records, producer_id=7, producer_epoch=2, is_transactional=True)
    assert batch_of(encoded, NOW_MS, producer_id=7, producer_epoch=2, is_transactional=True) == transactional
