"""Zombies: requests of members and producers that are none any more, as they come from processes that were stopped.

A member that left, or is of an earlier generation, commits an offset; a producer whose transactional id another one has
taken over writes a record. Each must be refused, whatever the cluster goes through. They speak the protocol themselves,
as a client that knows that it is fenced would not send them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from random import Random
from typing import Any, Final

from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.offset_commit.v9.request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kio.schema.produce.v11 import request as produce_v11
from kio.schema.produce.v12 import request as produce_v12
from kio.schema.types import GroupId, TopicName, TransactionalId
from kio.static.primitive import Records, i8, i16, i32, i32Timedelta, i64

from ....client.addresses import parse_addresses
from ....client.connection import connect
from ....protocol.errors import CorruptData, ErrorCode, KafkaError
from ....protocol.messages import Request
from ....protocol.records import Record, write_batch
from ...checkers.transactions import Place
from ...workloads.bumping_producer import FormerProducer
from .profiles import Profile

_TIMEOUT_MS: Final = 3_000
_TIMEOUT: Final = i32Timedelta.parse(timedelta(milliseconds=_TIMEOUT_MS))
_CHANCES: Final = {"zombie-commit": 0.05, "zombie-produce": 0.5, "impatient-life": 0.2, "mixed-commits": 0.3}
_GROUP: Final = 0
# Before the second version of the protocol, whose Produce adds the partition to the transaction, and with it.
_PRODUCE_VERSIONS: Final = (produce_v11, produce_v12)


class Zombies:
    """All of a run. `counts` tells what came of their requests."""

    def __init__(
        self, bootstrap: Sequence[str], *, leader: Callable[[Place], int | None], random: Random, profile: Profile,
        now_ms: Callable[[], int], trace: Callable[[str], None],
    ) -> None:  # fmt: skip
        self.is_over = False
        """All is healed: no more of them."""
        self.counts: Counter[str] = Counter()
        self.violations: list[str] = []
        self._addresses = parse_addresses(",".join(bootstrap))
        self._leader = leader
        self._random = random
        self._chances = {kind: chance * profile.weight(kind) for kind, chance in _CHANCES.items()}
        self._now_ms = now_ms
        self._trace = trace

    def is_due(self, kind: str) -> bool:
        chance = self._chances[kind]
        return chance > 0 and not self.is_over and self._random.random() < chance

    async def commit(self, group: str, place: Place, *, member: str, epoch: int) -> None:
        """Offset 0, which no member commits, in the name of a former member, or with a former epoch of a member."""
        what = f"commit of {member} with epoch {epoch} of {group} for {place.topic}-{place.partition}"
        partition = OffsetCommitRequestPartition(
            partition_index=i32(place.partition), committed_offset=i64(0), committed_metadata=None
        )
        request = OffsetCommitRequest(
            group_id=GroupId(group), generation_id_or_member_epoch=i32(epoch), member_id=member,
            topics=(OffsetCommitRequestTopic(name=TopicName(place.topic), partitions=(partition,)),),
        )  # fmt: skip
        try:
            host, port = await self._find_coordinator(group)
            answer = await self._ask(host, port, request)
            self._judge("zombie commit", what, int(answer.topics[0].partitions[0].error_code))
        except (KafkaError, ConnectionError, TimeoutError, CorruptData) as error:
            self._note("zombie commit", what, f"lost: {type(error).__name__}")

    async def produce(self, transactional_id: str, former: FormerProducer, place: Place) -> None:
        """A record with the epoch that the transactional id had before."""
        what = f"record of producer {former.producer_id} epoch {former.producer_epoch} for {place}"
        node_id = self._leader(place)
        if node_id is None or node_id < 1:
            return
        batch = write_batch(
            [Record(0, self._now_ms(), None, b"zombie of " + transactional_id.encode())],
            base_sequence=former.next_sequences.get(place, 0), is_transactional=True,
            producer_id=former.producer_id, producer_epoch=former.producer_epoch,
        )  # fmt: skip
        version: Any = self._random.choice(_PRODUCE_VERSIONS)
        data = (version.PartitionProduceData(index=i32(place.partition), records=Records(batch)),)
        request = version.ProduceRequest(
            transactional_id=TransactionalId(transactional_id), acks=i16(-1), timeout=_TIMEOUT,
            topic_data=(version.TopicProduceData(name=TopicName(place.topic), partition_data=data),),
        )  # fmt: skip
        try:
            address = self._addresses[node_id - 1]
            answer = await self._ask(address.host, address.port, request)
            self._judge("zombie produce", what, int(answer.responses[0].partition_responses[0].error_code))
        except (KafkaError, ConnectionError, TimeoutError, CorruptData) as error:
            self._note("zombie produce", what, f"lost: {type(error).__name__}")

    async def _find_coordinator(self, group: str) -> tuple[str, int]:
        address = self._random.choice(self._addresses)
        wanted = FindCoordinatorRequest(key_type=i8(_GROUP), coordinator_keys=(group,))
        answer = await self._ask(address.host, address.port, wanted)
        (found,) = answer.coordinators
        if int(found.error_code):
            raise KafkaError(ErrorCode(int(found.error_code)))
        return found.host, int(found.port)

    async def _ask(self, host: str, port: int, request: Request) -> Any:
        async with await connect(host, port, client_id="zombie", timeout_ms=_TIMEOUT_MS) as connection:
            return await connection.call(request)

    def _judge(self, kind: str, what: str, code: int) -> None:
        if code == ErrorCode.NONE:
            self.violations.append(f"a zombie was not refused: {what}")
        self._note(kind, what, ErrorCode(code).name)

    def _note(self, kind: str, what: str, outcome: str) -> None:
        self.counts[f"{kind}, {outcome}"] += 1
        self._trace(f"{kind}: {what}: {outcome}")
