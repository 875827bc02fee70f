"""Random transactions in a log that rolls, is cut, closed, killed and copied, against a plain list of its batches.

What is held after each step: the aborted transactions of any range of offsets, the last stable offset, who has a
transaction open since when; for the leader's log and for the follower's.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

import pytest
from produced_batches import produced

from penstock.protocol.records import Record, write_batch
from penstock.storage.disk.memory_files import MemoryFiles
from penstock.storage.log.log import Log
from penstock.storage.log.rules.aborted_transaction import AbortedTransaction
from penstock.storage.log.rules.config import LogConfig
from penstock.storage.log.rules.control_records import write_end_transaction_marker
from penstock.storage.log.transaction_index import TransactionIndex

NOW = 1_700_000_000_000
PRODUCERS = range(3)
STEPS = 60
SEEDS = 60


class Appended(NamedTuple):
    """A batch, or with `is_commit` the end of a transaction."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_commit: bool | None


class Life:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.files = MemoryFiles()
        self.follower_files = MemoryFiles()
        self.config = LogConfig(segment_bytes=self.random.choice([250, 600, 5000]), retention_ms=-1)
        self.log = self.open(self.files)
        self.follower = self.open(self.follower_files)
        self.appended: list[Appended] = []
        self.sequences = dict.fromkeys(PRODUCERS, 0)
        self.epochs = dict.fromkeys(PRODUCERS, 0)

    def open(self, files: MemoryFiles, *, is_clean: bool = True, recovery_point: int = 0) -> Log:
        return Log.open(
            files,
            "/data/a-0",
            topic="a",
            partition=0,
            topic_id=None,
            config=self.config,
            is_clean=is_clean,
            now_ms=NOW,
            recovery_point=recovery_point,
        )

    def produce(self) -> None:
        producer_id = self.random.choice(PRODUCERS)
        count = self.random.randint(1, 3)
        batch = write_batch(
            [Record(number, NOW, b"k", b"v") for number in range(count)],
            producer_id=producer_id,
            producer_epoch=self.epochs[producer_id],
            base_sequence=self.sequences[producer_id],
            is_transactional=True,
        )
        verification = self.log.producers.begin_verification(
            producer_id, self.epochs[producer_id], self.sequences[producer_id], has_epoch_bumps=False, now_ms=NOW
        )
        info = self.log.append_as_leader(produced(batch), leader_epoch=0, now_ms=NOW, verification=verification)
        self.sequences[producer_id] += count
        self.appended.append(Appended(producer_id, info.first_offset, info.last_offset, None))

    def end(self) -> None:
        producer_id = self.random.choice(PRODUCERS)
        is_commit = self.random.random() < 0.5
        version = self.random.choice([1, 2])
        if version == 2:
            self.epochs[producer_id] += 1
            self.sequences[producer_id] = 0
        marker = write_end_transaction_marker(
            producer_id, self.epochs[producer_id], is_commit=is_commit, coordinator_epoch=0, now_ms=NOW
        )
        info = self.log.append_of_coordinator(marker, leader_epoch=0, now_ms=NOW, transaction_version=version)
        self.appended.append(Appended(producer_id, info.first_offset, info.last_offset, is_commit))

    def replicate(self) -> None:
        while self.follower.log_end_offset < self.log.log_end_offset:
            data = self.log.read(
                self.follower.log_end_offset,
                max_bytes=self.random.choice([1, 300, 100_000]),
                end_offset=self.log.log_end_offset,
                min_one_batch=True,
            )
            raw = b"".join(bytes(piece.read(0, piece.size)) for piece in data.slices)
            self.follower.append_as_follower(raw, now_ms=NOW)
        self.check(self.follower)

    def cut(self) -> None:
        if not self.appended:
            return
        offset = self.random.choice(self.appended).first_offset
        self.log.truncate_to(offset)
        self.follower.truncate_to(offset)
        self.forget_from(offset)

    def close(self) -> None:
        self.log.flush()
        self.log.close()
        if self.random.random() < 0.5:
            self.files.crash(self.random)
        self.log = self.open(self.files, recovery_point=self.log.log_end_offset)

    def flush(self) -> None:
        self.log.flush()

    def kill(self) -> None:
        if self.random.random() < 0.5:
            self.log.flush()
        # The checkpoint may be as old as can be.
        recovery_point = self.random.choice([0, self.log.recovery_point])
        self.log.close_files()
        self.files.crash(self.random)
        self.log = self.open(self.files, is_clean=False, recovery_point=recovery_point)
        self.follower.truncate_to(self.log.log_end_offset)
        self.forget_from(self.log.log_end_offset)

    def forget_from(self, offset: int) -> None:
        """And the producers go on from what is left."""
        self.appended = [one for one in self.appended if one.last_offset < offset]
        known = {one.producer_id: one for one in self.log.producers.active(NOW)}
        for producer_id in PRODUCERS:
            if producer_id in known:
                self.epochs[producer_id] = known[producer_id].epoch
                self.sequences[producer_id] = known[producer_id].next_sequence
            else:
                self.epochs[producer_id] = self.sequences[producer_id] = 0

    def expected(self) -> tuple[dict[int, int], list[tuple[int, int, int]]]:
        """Open transactions, and aborted ones with their first and last offset."""
        open_since: dict[int, int] = {}
        aborted = []
        for one in self.appended:
            if one.is_commit is None:
                open_since.setdefault(one.producer_id, one.first_offset)
                continue
            first_offset = open_since.pop(one.producer_id, None)
            if first_offset is not None and not one.is_commit:
                aborted.append((one.producer_id, first_offset, one.last_offset))
        return open_since, aborted

    def check(self, log: Log) -> None:
        open_since, aborted = self.expected()
        end_offset = log.log_end_offset
        assert log.last_stable_offset(end_offset) == min(open_since.values(), default=end_offset)
        known = {
            one.producer_id: one.transaction_first_offset
            for one in log.producers.active(NOW)
            if one.transaction_first_offset is not None
        }
        assert known == open_since
        low, high = sorted((self.random.randint(0, end_offset), self.random.randint(0, end_offset)))
        for start, end in ((0, end_offset), (low, high)):
            found = [one[:3] for one in log.aborted_transactions(start, end)]
            assert found == [one for one in aborted if one[2] >= start and one[1] < end]

    def live(self) -> None:
        steps = [self.produce] * 8 + [self.end] * 4 + [self.replicate] * 2
        steps += [self.cut, self.flush, self.close, self.kill]
        for _ in range(STEPS):
            self.random.choice(steps)()
            self.check(self.log)
        self.replicate()


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(SEEDS))
def test_transactions_are_what_the_log_says_through_cuts_and_crashes(seed: int) -> None:
    Life(seed).live()


def test_what_was_cut_from_a_transaction_index_does_not_come_back() -> None:
    files = MemoryFiles()
    files.make_directory("/data")
    index = TransactionIndex(files, "/data/0.txnindex")
    index.append(AbortedTransaction(1, 0, 5, 0))
    for _ in range(2):
        file = index.file_if_any()
        assert file is not None, "it is to be synced"
        file.sync()
        index.truncate_to(0)
