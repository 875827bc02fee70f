"""Bytes as the batch of a Produce request of the latest version."""

from penstock.protocol.batches import Buffer
from penstock.storage.log.rules.batch_admission import read_produced_batch
from penstock.storage.log.rules.record_batch import ProducedBatch

VERSION = 13


def produced(records: Buffer) -> ProducedBatch:
    return read_produced_batch(records, VERSION)
