"""The partition of a coordinator, as its rules see it.

An event looks at the state, appends the records of what changes, and changes the state. That order is what makes it
safe: `append` raises before anything is changed, and what it took is replayed by every later coordinator of the
partition or, if it is never committed, by none. In that case this coordinator is replaced too and its state forgotten,
so nothing is ever taken back. An append is a call and no effect, because rules decide by its outcome: a request whose
records are refused receives the error, and a static member keeps its old place. All else that an event brings about is
an effect (`effects.py`). A reply is held until all is committed that the event has appended: no client sees a state
that may still be lost.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ...protocol.records import EncodedRecords
from ...storage.log.rules.transaction_verification import TransactionVerification


class StateRecord(NamedTuple):
    """One change of a coordinator's state, as it lies in its partition: `value` None deletes what has the key."""

    key: bytes
    value: bytes | None


class TransactionProducer(NamedTuple):
    """For whom something is remembered that counts when its transaction commits."""

    producer_id: int
    producer_epoch: int
    verification: TransactionVerification | None
    """What was asked for before the transaction's coordinator agreed; None while the transaction goes on here."""


class StateLog(Protocol):
    """The partition that a coordinator keeps its state in."""

    def append(self, records: Sequence[StateRecord]) -> int:
        """Appends them as one batch, all or none, and returns the offset of the first.

        Raises KafkaError, of the errors that clients of a coordinator know, and then nothing was appended.
        """


class TransactionalStateLog(StateLog, Protocol):
    """One that takes records that are encoded, and what counts only when a transaction commits."""

    def append_encoded(self, records: EncodedRecords) -> int:
        """As `append`."""

    def append_in_transaction(self, records: EncodedRecords, producer: TransactionProducer) -> int:
        """As `append`, for what is to count when the producer's transaction commits, of which `replay_end_transaction`
        tells. KafkaError, those of `ProducerState.check_epoch` among them."""
