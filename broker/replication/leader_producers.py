"""What a leader knows of the producers below an offset (`OwnApiKey.FETCH_PRODUCERS`), as CBOR arrays.

    [topic, partition, leader epoch, offset]    [0, producers, as in a producer snapshot]

A refusal is `[number of Kafka's error code, empty]`.

A follower that begins its log where its leader's begins learns from the records only of those who have written since.
Of the others it would take a retry for a new batch, and store it again, once it leads. Apache Kafka's followers do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import cbor2

from ...client.connection import Connection
from ...protocol.errors import CorruptData, ErrorCode, KafkaError
from ...protocol.own_apis import OwnApiKey
from ...quorum.cbor_errors import CBOR_ERRORS
from ...storage.producer_entry import ProducerEntry
from ...storage.producer_snapshots import decode_snapshot, encode_snapshot

_NOTHING: Final = b""


class ProducersQuestion(NamedTuple):
    """What a follower asks: `offset` is where its log is to begin."""

    topic: str
    partition: int
    leader_epoch: int
    offset: int


async def ask_leader_producers(
    connection: Connection, question: ProducersQuestion, *, timeout_ms: int
) -> Sequence[ProducerEntry]:
    """Raises what `Connection.call_own` does, CorruptData, and KafkaError with the leader's refusal."""
    answer = await connection.call_own(OwnApiKey.FETCH_PRODUCERS, cbor2.dumps(list(question)), timeout_ms=timeout_ms)
    match _loads(answer):
        case [0, bytes() as snapshot]:
            return decode_snapshot(snapshot, f"the answer of {connection.peer}").entries
        case [int() as code, bytes()]:
            raise KafkaError(ErrorCode(code))
    raise CorruptData(f"{connection.peer} tells nothing of producers: {answer[:40].hex()}")


def decode_question(data: bytes) -> ProducersQuestion:
    """Raises CorruptData."""
    match _loads(data):
        case [str() as topic, int() as partition, int() as leader_epoch, int() as offset]:
            return ProducersQuestion(topic, partition, leader_epoch, offset)
    raise CorruptData(f"expected the question of a follower, found {data[:40].hex()}")


def encode_producers(producers: Sequence[ProducerEntry]) -> bytes:
    return cbor2.dumps([int(ErrorCode.NONE), encode_snapshot(producers, {})])


def encode_refusal(code: ErrorCode) -> bytes:
    return cbor2.dumps([int(code), _NOTHING])


def _loads(data: bytes) -> object:
    try:
        return cbor2.loads(data)
    except CBOR_ERRORS as error:
        raise CorruptData(f"expected CBOR, found {data[:40].hex()}: {error}") from None
