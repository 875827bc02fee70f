"""What followers ask of their leader on behalf of producers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import cbor2
import pytest

from penstock.broker.replication import leader_producers
from penstock.broker.replication.leader_producers import (
    ProducersQuestion,
    answer_question,
    ask_leader_producers,
    decode_question,
    encode_refusal,
)
from penstock.protocol.errors import CorruptData, ErrorCode, KafkaError
from penstock.protocol.ids import LeaderEpoch
from penstock.protocol.own_apis import OwnApiKey
from penstock.storage.log.rules.aborted_transaction import AbortedTransaction
from penstock.storage.log.rules.producer_entry import BatchMetadata, ProducerEntry
from penstock.storage.log.rules.producer_state import ProducerState

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.client.connection import Connection

QUESTION = ProducersQuestion("t", 0, LeaderEpoch(3), 1_000)


class Leader:
    """The connection to one."""

    peer = "node 1"

    def __init__(self, answer: Callable[[ProducersQuestion], bytes]) -> None:
        self._answer = answer
        self.answers: list[bytes] = []

    async def call_own(self, api_key: OwnApiKey, body: bytes, *, timeout_ms: int) -> bytes:
        assert (api_key, timeout_ms) == (OwnApiKey.FETCH_PRODUCERS, 1)
        self.answers.append(self._answer(decode_question(body)))
        return self.answers[-1]

    def ask(self) -> list[int]:
        asked = ask_leader_producers(cast("Connection", self), QUESTION, timeout_ms=1)
        return [producer.producer_id for producer in asyncio.run(asked)]


@pytest.mark.parametrize("count", [0, 1, 3, 4, 7, 9])
def test_producers_are_told_in_several_answers(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(leader_producers, "PAGE", 3)
    state = ProducerState("t-0", 10**9)
    # Kept in the order in which they came.
    ids = [producer_id * 7 % 100 for producer_id in range(count)]
    for producer_id in ids:
        batch = BatchMetadata(0, 0, producer_id, producer_id, 1)
        state.entries[producer_id] = ProducerEntry(producer_id, epoch=0, appended_ms=1, batches=[batch])
    leader = Leader(lambda question: answer_question(state, question))
    assert leader.ask() == sorted(ids)
    assert len(leader.answers) == max(1, -(-count // 3))


def test_transactions_that_were_aborted_behind_the_offset_began_before_it() -> None:
    state = ProducerState("t-0", 10**9)
    for producer_id in (1, 2):
        state.entries[producer_id] = ProducerEntry(producer_id, epoch=0, appended_ms=1)
    offset = QUESTION.offset
    aborted = [
        # Of one that has expired since, and one that began behind.
        AbortedTransaction(3, offset - 1, offset + 1, offset + 2),
        AbortedTransaction(1, offset - 2, offset + 2, offset + 3),
        AbortedTransaction(2, offset, offset + 4, offset + 5),
    ]
    leader = Leader(lambda question: answer_question(state, question, aborted))
    producers = asyncio.run(ask_leader_producers(cast("Connection", leader), QUESTION, timeout_ms=1))
    assert {one.producer_id: one.transaction_first_offset for one in producers} == {
        1: offset - 2,
        2: None,
        3: offset - 1,
    }


@pytest.mark.parametrize(
    "answer",
    [
        b"?",
        cbor2.dumps([]),
        cbor2.dumps([0, b"no snapshot", False]),
        # That would be asked again for ever.
        answer_question(ProducerState("t-0", 1), QUESTION)[:-1] + b"\xf5",
    ],
)
def test_an_answer_that_is_none_is_told(answer: bytes) -> None:
    with pytest.raises(CorruptData):
        Leader(lambda _: answer).ask()


def test_a_refusal_is_raised() -> None:
    with pytest.raises(KafkaError, match="FENCED_LEADER_EPOCH"):
        Leader(lambda _: encode_refusal(ErrorCode.FENCED_LEADER_EPOCH)).ask()
