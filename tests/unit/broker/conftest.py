"""The data path of one node in a folder: partitions, and requests of any version answered by the real handlers."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from errno import EIO
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import pytest
from kio.schema.add_partitions_to_txn.v5.request import AddPartitionsToTxnRequest
from kio.schema.add_partitions_to_txn.v5.response import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from kio.schema.fetch.v12 import request as fetch_v12
from kio.schema.fetch.v18 import request as fetch_v18
from kio.schema.produce.v12 import request as produce_v12
from kio.schema.produce.v13 import request as produce_v13
from kio.static.primitive import i32Timedelta
from other_tasks import end_other_tasks
from typed_ids import node_ids

from penstock.broker.coordinators.transaction_verifier import VerificationConfig
from penstock.broker.network.request import Answer, CloseConnection, Request, RequestContext
from penstock.broker.network.rules.client_quota import ClientQuota
from penstock.broker.network.rules.request_memory import RequestMemory
from penstock.broker.network.rules.request_statistics import RequestStatistics
from penstock.broker.node.data_path import DataPath, DataPathConfig, wire_data_path
from penstock.broker.replicas.partition import Partition
from penstock.broker.replicas.replica_manager import ReplicaManager
from penstock.broker.replicas.rules.in_sync_replicas import IsrProposal
from penstock.broker.replication.rules.replication_quota import ReplicationQuota
from penstock.broker.timing.runtime import Runtime
from penstock.protocol.apis import ApiKey
from penstock.protocol.errors import CorruptData, ErrorCode, KafkaError
from penstock.protocol.ids import BrokerEpoch, ControllerEpoch, LeaderEpoch, NodeId, PartitionEpoch, TopicId
from penstock.protocol.messages import decode_header, decode_response, encode_request, kio_error
from penstock.protocol.records import Record, write_batch
from penstock.quorum.metadata.delta import MetadataDelta
from penstock.quorum.metadata.image import EMPTY_IMAGE, MetadataImage
from penstock.quorum.metadata.records import (
    DIRECTORY_UNASSIGNED,
    ConfigRecord,
    Endpoint,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from penstock.storage.directories.offline_logs import OfflineLogs
from penstock.storage.disk.files import DiskFiles
from penstock.storage.disk.rules.disk_errors import leaves_directory_usable
from penstock.storage.log.log import Log
from penstock.storage.log.rules.config import LogConfig
from penstock.storage.log.rules.producer_entry import ProducerEntry
from penstock.storage.log.rules.tiered_history import TieredHistory

NODE_ID = NodeId(1)
NOW_MS = 1_700_000_000_000
LAG_MS_MAX = 10_000


class Logs:
    """A log manager of one folder; `failure` is what every new log meets."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.failure: OSError | KafkaError | CorruptData | None = None
        self.repairs: list[tuple[str, int, int | None]] = []
        self.asked: list[tuple[str, int, UUID | None, bool]] = []
        self.offline = OfflineLogs()
        self._files = DiskFiles()
        self._logs: dict[tuple[str, int], Log] = {}

    def fail(self, error: OSError) -> None:
        """The folder's disk has failed."""
        for key in self._logs:
            self.offline.fail(key, error)

    def get_or_create(
        self,
        topic: str,
        partition: int,
        topic_id: UUID,
        config: LogConfig,
        *,
        directory_id: UUID | None = None,
        is_new: bool = False,
    ) -> Log:
        self.asked.append((topic, partition, directory_id, is_new))
        if self.failure is not None:
            raise self.failure
        log = self._logs.get((topic, partition))
        if log is None:
            log = self._logs[topic, partition] = Log.open(
                self._files,
                f"{self.folder}/{topic}-{partition}",
                topic=topic,
                partition=partition,
                topic_id=TopicId(topic_id),
                config=config,
                is_clean=True,
                now_ms=NOW_MS,
            )
        return log

    def not_counted_on(self) -> Iterable[tuple[str, int]]:
        return ()

    def delete(self, topic: str, partition: int) -> None:
        self.offline.forget((topic, partition))
        log = self._logs.pop((topic, partition), None)
        if log is not None:
            log.close()
            shutil.rmtree(f"{self.folder}/{topic}-{partition}")

    def truncate(self, offsets: Mapping[Log, int]) -> None:
        for log, offset in offsets.items():
            log.truncate_to(offset)

    def restart(
        self,
        log: Log,
        offset: int,
        producers: Iterable[ProducerEntry],
        now_ms: int,
        tiered: TieredHistory | None = None,
    ) -> None:
        log.truncate_fully_and_start_at(offset, producers, now_ms, tiered=tiered)

    def begin_repair(self, topic: str, partition: int, damage_offset: int | None) -> bool:
        self.repairs.append((topic, partition, damage_offset))
        self.offline.refuse((topic, partition), OSError("being repaired"), is_new=False)
        return True

    def update_config(self, topic: str, config: LogConfig) -> None:
        for (name, _), log in self._logs.items():
            if name == topic:
                log.config = config


class Flusher:
    """Syncs when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Log, int, Callable[[OSError | None], None]]] = []

    def request(self, log: Log, end_offset: int, on_flushed: Callable[[OSError | None], None]) -> None:
        self.waiting.append((log, end_offset, on_flushed))

    def finish(self, error: OSError | None = None) -> None:
        waiting, self.waiting = self.waiting, []
        for log, end_offset, on_flushed in waiting:
            if error is None:
                log.flush_to(end_offset)
            on_flushed(error)


class Replication:
    """Notes what the partitions ask for."""

    def __init__(self) -> None:
        self.proposals: list[tuple[Partition, IsrProposal]] = []
        self.followed: dict[Partition, int] = {}

    def submit(self, partition: Partition, proposal: IsrProposal) -> None:
        self.proposals.append((partition, proposal))

    def follow(self, partition: Partition) -> None:
        self.followed[partition] = partition.state.leader_id

    def unfollow(self, partition: Partition) -> None:
        self.followed.pop(partition, None)

    def on_log_start(self, partition: Partition) -> None:
        """They have no leader."""

    async def stop(self) -> None: ...


class Exchange:
    """One request and what came of it."""

    def __init__(self, node: DataNode, api_key: ApiKey, version: int, message: Any) -> None:
        frame = encode_request(api_key, version, 7, node.client_id, message)
        body = memoryview(frame)[4:]
        header = decode_header(body)
        context = RequestContext(
            listener_name="PLAINTEXT",
            peer_host="127.0.0.1",
            client_id=node.client_id,
            node_id=node.peer_node_id,
            quota=node.quota,
        )
        self.muted_ms = 0
        """For how long the connection was muted."""
        self._version = version
        self._api_key = api_key
        self.request = Request(self, api_key, version, 7, context, body, header.body_offset)
        self.reason: str | None = None
        """Why the connection was closed."""
        self.is_held_back = False
        """Whether nothing behind it on its connection may begin."""

    @property
    def is_answered(self) -> bool:
        return self.request.answer is not None

    @property
    def answer(self) -> Any:
        """The response as a value of kio, records included."""
        parts = self.request.answer
        assert parts is not None, "not answered yet"
        assert not isinstance(parts, CloseConnection)
        if isinstance(parts, bytes):
            parts = [parts]
        frame = b"".join(part if isinstance(part, bytes) else part.read(0, part.size) for part in parts)
        return decode_response(self._api_key, self._version, frame, 4)[1]

    def disconnect(self) -> None:
        self.request.is_connected = False
        if self.request.on_disconnect is not None:
            self.request.on_disconnect()

    def on_answer(self, _request: Request, answer: Answer) -> None:
        if isinstance(answer, CloseConnection):
            self.reason = answer.reason

    def hold_later_requests(self, _request: Request) -> None:
        self.is_held_back = True

    def release_later_requests(self, _request: Request) -> None:
        self.is_held_back = False

    def mute(self, throttle_time_ms: int) -> None:
        self.muted_ms = throttle_time_ms

    def set_context(self, context: RequestContext) -> None: ...


class PuppetPeers:
    """Coordinators of transactions: what they are asked waits for the test to `answer`."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, Any, asyncio.Future[Any]]] = []

    async def request(self, broker_id: int, message: Any) -> Any:
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.asked.append((broker_id, message, answered))
        return await answered

    def answer(
        self, errors: Mapping[tuple[str, int], ErrorCode] | None = None, *, top: ErrorCode = ErrorCode.NONE
    ) -> AddPartitionsToTxnRequest:
        """To the oldest question, that all is well but for `errors`; returns what was asked."""
        _, message, answered = self.asked.pop(0)
        answered.set_result(
            AddPartitionsToTxnResponse(
                throttle_time=i32Timedelta.parse(timedelta(0)),
                error_code=kio_error(top),
                results_by_transaction=tuple(
                    AddPartitionsToTxnResult(
                        transactional_id=one.transactional_id,
                        topic_results=tuple(
                            AddPartitionsToTxnTopicResult(
                                name=topic.name,
                                results_by_partition=tuple(
                                    AddPartitionsToTxnPartitionResult(
                                        partition_index=index,
                                        partition_error_code=kio_error(
                                            (errors or {}).get((topic.name, index), ErrorCode.NONE)
                                        ),
                                    )
                                    for index in topic.partitions
                                ),
                            )
                            for topic in one.topics
                        ),
                    )
                    for one in message.transactions
                ),
            )
        )
        assert isinstance(message, AddPartitionsToTxnRequest)
        return message

    def fail(self, error: ErrorCode) -> None:
        self.asked.pop(0)[2].set_exception(KafkaError(error))


class DataNode:
    """Node 1 of a cluster whose metadata the test writes."""

    def __init__(self, folder: Path, loop: asyncio.AbstractEventLoop) -> None:
        self.client_id = "test"
        # Which node of the cluster the connection of a request has been proved to be.
        self.peer_node_id: NodeId | None = None
        self.quota: ClientQuota | None = None
        self.suspected: set[NodeId] = set()
        self.replication = Replication()
        self.loop = loop
        self.failures: list[str] = []
        self.now_ms = NOW_MS
        self.runtime = Runtime(
            loop=loop,
            wall_clock_ms=lambda: self.now_ms,
            steady_clock_ms=lambda: self.now_ms,
            monotonic_ms=lambda: self.now_ms,
            random=Random(1),
            fail=self.failures.append,
        )
        self.logs = Logs(folder)
        self.flusher = Flusher()
        self.image: MetadataImage = EMPTY_IMAGE
        self.configs = LogConfig()
        self.failed_directories: list[str] = []
        self.leader_quota = ReplicationQuota(window_count=11, window_ms=1000)
        self.peers = PuppetPeers()
        self.on_internal_change: Callable[[Partition], None] = lambda _partition: None
        self.on_damage: Callable[[Partition], None] = lambda _partition: None
        self.verification = VerificationConfig(is_enabled=True, retry_backoff_ms=1, retry_ms_max=100)
        self.memory = RequestMemory(1_000_000)
        self.requests = RequestStatistics()
        self.data_path = self.wired({})
        self.partitions = self.data_path.partitions
        self.produces = self.data_path.produces
        self.produce_handler = self.data_path.produce
        self.fetch_handler = self.data_path.fetch
        self.publish(
            *(
                RegisterBrokerRecord(
                    broker_id=NodeId(broker_id),
                    broker_epoch=BrokerEpoch(broker_id),
                    incarnation_id=UUID(int=broker_id),
                    endpoints=(
                        Endpoint(name="PLAINTEXT", host="127.0.0.1", port=9000 + broker_id, security_protocol=0),
                    ),
                    is_fenced=False,
                    rack=f"rack-{broker_id}",
                )
                for broker_id in (NODE_ID, 2)
            )
        )

    def wired(self, high_watermarks: Mapping[tuple[str, int], int]) -> DataPath:
        """As a node is, with puppets at the ports."""
        return wire_data_path(
            DataPathConfig(
                node_id=NODE_ID,
                replica_lag_time_max_ms=LAG_MS_MAX,
                max_incremental_fetch_session_cache_slots=10,
                fetch_max_bytes=1_000_000,
                is_closest_replica_read=True,
            ),
            self.logs,
            self.flusher,
            self.replication,
            self.peers,
            make_fetchers=lambda _partitions: self.replication,
            log_config=self._log_config,
            high_watermarks=high_watermarks,
            on_disk_error=self._on_disk_error,
            on_internal_change=lambda partition: self.on_internal_change(partition),
            on_damage=lambda partition: self.on_damage(partition),
            suspected=self.suspected,
            verification=lambda: self.verification,
            leader_quota=self.leader_quota,
            memory=self.memory,
            requests=self.requests,
            runtime=self.runtime,
        )

    def restarted(self, high_watermarks: Mapping[tuple[str, int], int]) -> ReplicaManager:
        """Another manager of the same logs."""
        return self.wired(high_watermarks).partitions

    def _log_config(self, _image: MetadataImage, _topic: str) -> LogConfig:
        return self.configs

    def _on_disk_error(self, directory: str, error: OSError) -> None:
        if leaves_directory_usable(error):
            return
        self.failed_directories.append(directory)
        self.fail_directory(error)

    def fail_directory(self, error: OSError | None = None) -> None:
        self.logs.fail(OSError(EIO, "the disk has failed") if error is None else error)
        self.partitions.on_directory_failure(str(self.logs.folder))

    # Metadata.

    def turn(self) -> None:
        """What was left for the end of the turn of the loop is done."""
        self.loop.call_soon(self.loop.stop)
        self.loop.run_forever()

    def publish(self, *records: MetadataRecord) -> None:
        delta = MetadataDelta(self.image)
        for record in records:
            delta.replay(record)
        self.image = delta.apply(offset=self.image.offset + 1, epoch=ControllerEpoch(1), timestamp_ms=NOW_MS)
        self.partitions.publish(delta, self.image)

    def create_topic(
        self,
        name: str = "a",
        *,
        partition_count: int = 1,
        leader: int = NODE_ID,
        replicas: tuple[int, ...] = (NODE_ID,),
    ) -> UUID:
        topic_id = UUID(int=100 + self.image.offset)
        self.publish(
            TopicRecord(name=name, topic_id=TopicId(topic_id)),
            *(_partition(topic_id, index, leader, replicas) for index in range(partition_count)),
        )
        return topic_id

    def add_partition(self, topic: str, index: int) -> None:
        self.publish(_partition(self.image.topics.by_name[topic].topic_id, index, NODE_ID, (NODE_ID,)))

    def elect(self, topic: str, leader: int, index: int = 0) -> None:
        self.publish(
            PartitionChangeRecord(
                topic_id=self.image.topics.by_name[topic].topic_id, partition_id=index, leader=NodeId(leader)
            )
        )

    def publish_isr(self, topic: str, *isr: int) -> None:
        """What the controller has made of the ISR of partition 0."""
        topic_id = self.image.topics.by_name[topic].topic_id
        self.publish(PartitionChangeRecord(topic_id=topic_id, partition_id=0, isr=node_ids(*isr)))

    def reassign(self, topic: str, *replicas: int) -> None:
        self.publish(
            PartitionChangeRecord(
                topic_id=self.image.topics.by_name[topic].topic_id,
                partition_id=0,
                replicas=node_ids(*replicas),
                isr=node_ids(*replicas),
                directories=tuple(DIRECTORY_UNASSIGNED for _ in replicas),
                leader=NodeId(replicas[0]),
            )
        )

    def delete_topic(self, name: str) -> None:
        self.publish(RemoveTopicRecord(topic_id=self.image.topics.by_name[name].topic_id))

    def configure(self, topic: str, **values: Any) -> None:
        """Changes what every topic gets, and tells of a change of this one."""
        self.configs = replace(self.configs, **values)
        self.publish(ConfigRecord(resource_type=2, resource_name=topic, name="flush.messages", value="1"))

    def hosted(self, topic: str = "a", index: int = 0) -> Partition:
        return self.partitions.get_online(topic, index)

    # Requests.

    def batch(self) -> bytes:
        return batch()

    def begin_produce(
        self,
        records: bytes | None,
        *,
        topic: str | UUID = "a",
        index: int = 0,
        acks: int = -1,
        version: int = 9,
        timeout_ms: int = 1000,
        transactional_id: str | None = None,
        more: tuple[tuple[int, bytes | None], ...] = (),
    ) -> Exchange:
        classes: Any = produce_v13 if isinstance(topic, UUID) else produce_v12
        version = 13 if isinstance(topic, UUID) else version
        message = classes.ProduceRequest(
            transactional_id=transactional_id,
            acks=acks,
            timeout=_milliseconds(timeout_ms),
            topic_data=(
                classes.TopicProduceData(
                    **({"topic_id": topic} if isinstance(topic, UUID) else {"name": topic}),
                    partition_data=tuple(
                        classes.PartitionProduceData(index=one, records=batch)
                        for one, batch in ((index, records), *more)
                    ),
                ),
            ),
        )
        exchange = Exchange(self, ApiKey.PRODUCE, version, message)
        self.produce_handler.begin(exchange.request)
        return exchange

    def produce(self, records: bytes | None = None, **options: Any) -> Any:
        """The answer for the first partition."""
        exchange = self.begin_produce(batch() if records is None else records, **options)
        return exchange.answer.responses[0].partition_responses[0]

    def begin_fetch(
        self,
        *wanted: tuple[int, int],
        topic: str | UUID = "a",
        version: int = 11,
        max_wait_ms: int = 500,
        min_bytes: int = 1,
        max_bytes: int = 1_000_000,
        partition_max_bytes: int = 1_000_000,
        isolation_level: int = 0,
        session_id: int = 0,
        session_epoch: int = -1,
        current_leader_epoch: int = -1,
        last_fetched_epoch: int = -1,
        forgotten: tuple[int, ...] = (),
        replica_id: int = -1,
        replica_epoch: int = -1,
        log_start_offset: int = -1,
        rack: str = "",
    ) -> Exchange:
        """`wanted` has (partition, offset)."""
        has_ids = version >= 13
        classes: Any = fetch_v18 if has_ids else fetch_v12
        identity = {"topic_id": topic} if has_ids else {"topic": topic}
        partitions = tuple(
            classes.FetchPartition(
                partition=index,
                current_leader_epoch=current_leader_epoch,
                fetch_offset=offset,
                last_fetched_epoch=last_fetched_epoch,
                log_start_offset=log_start_offset,
                partition_max_bytes=partition_max_bytes,
            )
            for index, offset in wanted
        )
        replica = (
            {"replica_state": fetch_v18.ReplicaState(replica_id=replica_id, replica_epoch=replica_epoch)}  # type: ignore[arg-type]
            if has_ids
            else {"replica_id": replica_id}
        )
        message = classes.FetchRequest(
            **replica,
            cluster_id=None,
            max_wait=_milliseconds(max_wait_ms),
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            isolation_level=isolation_level,
            session_id=session_id,
            session_epoch=session_epoch,
            topics=(classes.FetchTopic(**identity, partitions=partitions),) if wanted else (),
            forgotten_topics_data=(classes.ForgottenTopic(**identity, partitions=forgotten),) if forgotten else (),
            rack_id=rack,
        )
        exchange = Exchange(self, ApiKey.FETCH, version, message)
        self.fetch_handler.begin(exchange.request)
        return exchange

    def fetch(self, *wanted: tuple[int, int], **options: Any) -> Any:
        """The answer for the first partition, without waiting."""
        exchange = self.begin_fetch(*wanted, **{"max_wait_ms": 0, **options})
        return exchange.answer.responses[0].partitions[0]


def _partition(topic_id: UUID, index: int, leader: int, replicas: tuple[int, ...]) -> PartitionRecord:
    return PartitionRecord(
        topic_id=TopicId(topic_id),
        partition_id=index,
        replicas=node_ids(*replicas),
        directories=tuple(DIRECTORY_UNASSIGNED for _ in replicas),
        isr=node_ids(*replicas),
        leader=NodeId(leader),
        leader_epoch=LeaderEpoch(0),
        partition_epoch=PartitionEpoch(0),
    )


def batch(count: int = 1) -> bytes:
    return write_batch([Record(number, NOW_MS, b"k", b"v") for number in range(count)])


def _milliseconds(value: int) -> i32Timedelta:
    return i32Timedelta.parse(timedelta(milliseconds=value))


@pytest.fixture
def node(tmp_path: Path) -> Iterator[DataNode]:
    loop = asyncio.new_event_loop()
    made = DataNode(tmp_path, loop)
    yield made
    made.data_path.verifier.close()
    loop.run_until_complete(end_other_tasks())
    loop.close()
