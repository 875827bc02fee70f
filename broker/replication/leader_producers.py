"""What a leader knows of the producers below an offset (`OwnApiKey.FETCH_PRODUCERS`), as CBOR arrays.

    question    topic, partition, leader epoch, offset, producer id
    answer      number of Kafka's error code, the producers as in a producer snapshot, whether there are more

The answer has the first `PAGE` of those whose id is above the one in the question: of hundreds of thousands at once it
would be tens of megabytes.

A follower that begins its log where its leader's begins learns from the records only of those who have written since.
Of the others it would take a retry for a new batch, and store it again, once it leads. Apache Kafka's followers do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import cbor2

from ...client.connection import Connection
from ...protocol.batches import NO_PRODUCER_ID
from ...protocol.errors import CorruptData, ErrorCode, KafkaError
from ...protocol.ids import LeaderEpoch
from ...protocol.own_apis import OwnApiKey
from ...quorum.raft.cbor_errors import CBOR_ERRORS
from ...storage.log.producer_snapshots import decode_snapshot, encode_snapshot
from ...storage.log.rules.aborted_transaction import AbortedTransaction
from ...storage.log.rules.producer_entry import ProducerEntry
from ...storage.log.rules.producer_state import ProducerState, begun_below

PAGE: Final = 5_000
"""Producers in one answer: some 50 ms of the leader's time and of the follower's; a fourth of a second where there are
half a million."""
_NOTHING: Final = b""


class ProducersQuestion(NamedTuple):
    """What a follower asks: `offset` is where its log is to begin."""

    topic: str
    partition: int
    leader_epoch: LeaderEpoch
    offset: int
    above_id: int = NO_PRODUCER_ID


class ProducersAnswer(NamedTuple):
    producers: Sequence[ProducerEntry]
    has_more: bool


async def ask_leader_producers(
    connection: Connection, question: ProducersQuestion, *, timeout_ms: int
) -> Sequence[ProducerEntry]:
    """Ask until all are told, each time for `timeout_ms` at most.

    Who wrote below the offset is known to the leader from the beginning on, so that the answers fit to each other.

    Raises what `Connection.call_own` does, CorruptData, and KafkaError with the leader's refusal.
    """
    producers: list[ProducerEntry] = []
    while True:
        answer = await _ask(connection, question, timeout_ms)
        producers += answer.producers
        if not answer.has_more:
            return producers
        question = question._replace(above_id=producers[-1].producer_id)


async def _ask(connection: Connection, question: ProducersQuestion, timeout_ms: int) -> ProducersAnswer:
    answer = await connection.call_own(OwnApiKey.FETCH_PRODUCERS, cbor2.dumps(list(question)), timeout_ms=timeout_ms)
    match _loads(answer):
        case [0, bytes() as snapshot, bool() as has_more]:
            entries = decode_snapshot(snapshot, f"the answer of {connection.peer}").entries
            if not has_more or (entries and entries[-1].producer_id > question.above_id):
                return ProducersAnswer(entries, has_more)
        case [int() as code, bytes(), False] if code != ErrorCode.NONE:
            raise KafkaError(ErrorCode(code))
    raise CorruptData(f"{connection.peer} tells nothing of producers: {answer[:40].hex()}")


def decode_question(data: bytes) -> ProducersQuestion:
    """Raises CorruptData."""
    match _loads(data):
        case [str() as topic, int() as partition, int() as leader_epoch, int() as offset, int() as above_id]:
            return ProducersQuestion(topic, partition, LeaderEpoch(leader_epoch), offset, above_id)
    raise CorruptData(f"expected the question of a follower, found {data[:40].hex()}")


def answer_question(
    known: ProducerState, question: ProducersQuestion, aborted: Sequence[AbortedTransaction] = ()
) -> bytes:
    """`aborted` are the transactions with an abort marker at or above the question's offset."""
    all_ids = known.entries.keys() | begun_below(question.offset, aborted).keys()
    ids = sorted(producer_id for producer_id in all_ids if producer_id > question.above_id)
    page = known.below(question.offset, ids[:PAGE], aborted=aborted)
    return cbor2.dumps([int(ErrorCode.NONE), encode_snapshot(page, {}), len(ids) > PAGE])


def encode_refusal(code: ErrorCode) -> bytes:
    return cbor2.dumps([int(code), _NOTHING, False])


def _loads(data: bytes) -> object:
    try:
        return cbor2.loads(data)
    except CBOR_ERRORS as error:
        raise CorruptData(f"expected CBOR, found {data[:40].hex()}: {error}") from None
