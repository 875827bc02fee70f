"""What a leader remembers while it asks a coordinator whether a producer's transaction has its partition (KIP-890).

Kafka: `VerificationStateEntry`, `VerificationGuard`.

The first batch of a transaction in a partition is appended only with the object that was made before the coordinator
was asked. The end of the transaction drops it, and so an answer that comes too late lets nothing in.
"""

from typing import Final


class TransactionVerification:
    """Of one producer id, until its first batch is appended. An identity: no two are equal."""

    __slots__ = ("begun_ms", "epoch", "has_epoch_bumps", "lowest_sequence")

    def __init__(self, epoch: int, sequence: int, *, has_epoch_bumps: bool, begun_ms: int) -> None:
        """`has_epoch_bumps`: every transaction has an epoch of its own, so its sequences begin at 0 (version 2)."""
        self.epoch = epoch
        self.lowest_sequence = sequence
        self.has_epoch_bumps = has_epoch_bumps
        self.begun_ms = begun_ms

    def note(self, epoch: int, sequence: int) -> None:
        """Another batch waits. What comes behind the lowest sequence must not overtake it (KAFKA-14884)."""
        if epoch > self.epoch:
            self.epoch = epoch
            self.lowest_sequence = sequence
        elif epoch == self.epoch and sequence < self.lowest_sequence:
            self.lowest_sequence = sequence


UNVERIFIED: Final = TransactionVerification(-1, 0, has_epoch_bumps=False, begun_ms=0)
"""Lets every batch in: for nodes that are told to ask no coordinator."""
