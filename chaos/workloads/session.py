"""A session: the producer and the consumer of one life of a client, with the same face whatever library is below.

Keys name partitions as histories do, "t-0". Every call ends within the time that the options say, raises NotDoneError
or UnknownOutcomeError, and leaves nothing running behind `close`, but for a call of a library that does not return:
that keeps its producer, which its successor fences off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from msgspec import Struct

DELIVERY_TIMEOUT_MS: Final = 5_000
REQUEST_TIMEOUT_MS: Final = 3_000
SESSION_TIMEOUT_MS: Final = 6_000
# A client that never comes back holds the last stable offset back for so long.
TRANSACTION_TIMEOUT_MS: Final = 10_000
MAX_POLL_RECORDS: Final = 500


class SessionOptions(Struct, frozen=True, kw_only=True):
    bootstrap: str
    client_id: str
    group: str | None = None
    transactional_id: str | None = None
    # Without: reads only.
    has_producer: bool = True
    is_idempotent: bool = True
    is_read_committed: bool = True
    # Commits what was polled by itself (`enable.auto.commit`).
    has_auto_commit: bool = False


class Send(NamedTuple):
    key: str
    value: bytes | None
    record_key: bytes | None = None


class Received(NamedTuple):
    offset: int
    value: bytes | None
    record_key: bytes | None = None


Polled = Mapping[str, Sequence[Received]]


class Life(Protocol):
    """Of a client, whatever it asks."""

    def rest(self, seconds: float) -> None:
        """Does nothing for so long, but for what the client does in the background."""

    def close(self) -> None: ...


class Session(Life, Protocol):
    def send(self, sends: Sequence[Send]) -> list[int]:
        """Sends all and waits for their offsets; an unknown outcome tells those that are known, None for the others."""

    def poll(self, timeout_s: float) -> Polled: ...

    def assign(self, keys: Sequence[str], *, from_beginning: bool) -> None:
        """Reads these keys from now on; from their ends, or from their beginnings."""

    def subscribe(self, topics: Sequence[str]) -> None: ...

    def seek(self, positions: Mapping[str, int]) -> None:
        """To where keys are read from next, as far as they are assigned."""

    def commit_offsets(self, positions: Mapping[str, int]) -> None: ...

    def begin(self) -> None: ...

    def send_offsets(self, positions: Mapping[str, int]) -> None:
        """As a part of the transaction (KIP-98, KIP-447)."""

    def commit(self) -> None: ...

    def abort(self) -> None: ...

    def reached(self, key: str) -> int:
        """The offset up to which everything was read, records that are not shown among it; 0 without any."""

    def end(self, key: str) -> int:
        """Where readers of this session's isolation come to now: the last stable offset, or the high watermark."""


def key_of(topic: str, partition: int) -> str:
    return f"{topic}-{partition}"


def place_of(key: str) -> tuple[str, int]:
    """The topic and the partition."""
    topic, _, partition = key.rpartition("-")
    return topic, int(partition)
