"""Metrics of coordinators, transactions, waiting requests and connections: they change for the right cause."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from confluent_kafka import Producer
from exposed_metrics import Samples, exposed
from kio.schema.api_versions.v4.request import ApiVersionsRequest
from kio.schema.consumer_group_heartbeat.v1.request import ConsumerGroupHeartbeatRequest
from kio.schema.consumer_group_heartbeat.v1.response import ConsumerGroupHeartbeatResponse
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i8, i32
from memory_node import MINUTE, World, create_topic, produce, run
from waiting import ask_until

from penstock.broker.metrics.metrics import Metrics
from penstock.broker.metrics.replica_reader import (
    WaitingReader,
    retention_percent,
)
from penstock.broker.metrics.request_reader import OTHER_SOFTWARE, SOFTWARE_MAX
from penstock.broker.metrics.rules.readings import Reader
from penstock.broker.timing.purgatory import DelayedOperation, Purgatory
from penstock.client.connection import Connection, connect
from penstock.protocol.errors import ErrorCode

GROUPS = "kafka_server_group_coordinator_metrics"
TRANSACTIONS = "kafka_server_transaction_coordinator_metrics"
MARKERS = "kafka_coordinator_transaction_transactionmarkerchannelmanager"
VERIFICATION = "kafka_server_addpartitionstotxnmanager_verification"
LATE = "kafka_server_replicamanager_partitionswithlatetransactionscount"
STABLE_LAG = "kafka_cluster_partition_laststableoffsetlag"
SOFTWARE = "kafka_server_socket_server_metrics_connections"


async def read(reader: Reader) -> Samples:
    metrics = Metrics(asyncio.get_running_loop(), 1)
    metrics.add_reader(reader)
    return Samples((await metrics.exposition(None))[0].decode())


async def join(connection: Connection, member: str) -> ErrorCode:
    answer = await connection.call(
        ConsumerGroupHeartbeatRequest(
            group_id=GroupId("group"),
            member_id=member,
            member_epoch=i32(0),
            rebalance_timeout=MINUTE,
            subscribed_topic_names=(TopicName("t"),),
            topic_partitions=(),
        )
    )
    assert isinstance(answer, ConsumerGroupHeartbeatResponse)
    return ErrorCode(int(answer.error_code))


def test_rebalances_of_consumer_groups_and_loaded_partitions_are_told() -> None:
    async def scenario() -> None:
        async with World(offsets_topic_num_partitions="1").running() as (node, connection):
            assert await create_topic(connection, "t", 2) is ErrorCode.NONE
            before = await exposed(node)
            assert before.value(f"{GROUPS}_consumer_group_rebalance_count") == 0
            assert before.value(f"{GROUPS}_partition_load_time_max") == 0
            node.parts.groups.load_times.note(100_000, node.metrics.watch.now_ms())
            await connection.call(FindCoordinatorRequest(key_type=i8(0), coordinator_keys=("group",)))
            await ask_until(lambda: join(connection, "one"), lambda error: error is ErrorCode.NONE)
            one = await exposed(node)
            assert one.value(f"{GROUPS}_consumer_group_rebalance_count") == 1
            assert await join(connection, "two") is ErrorCode.NONE
            two = await exposed(node)
            assert two.value(f"{GROUPS}_consumer_group_rebalance_count") == 2
            # The partition that this node has loaded is in the average, too.
            assert two.value(f"{GROUPS}_partition_load_time_max") == 100_000
            assert two.value(f"{GROUPS}_partition_load_time_avg") < 100_000

    run(scenario)


def test_a_transaction_is_verified_open_and_over() -> None:
    producers: list[Producer] = []
    errors: list[object] = []

    def begin(port: int, now_ms: int) -> None:
        producers.append(Producer({"bootstrap.servers": f"127.0.0.1:{port}", "transactional.id": "mover"}))
        producers[0].init_transactions(20)
        producers[0].begin_transaction()
        # By the node's clock.
        producers[0].produce("t", b"1", timestamp=now_ms, on_delivery=lambda error, _: errors.append(error))
        assert producers[0].flush(20) == 0
        assert [str(one) for one in errors] == ["None"]

    async def scenario() -> None:
        world = World(transaction_state_log_num_partitions="1", metrics_per_partition="true")
        async with world.running() as (node, connection):
            assert await create_topic(connection, "t") is ErrorCode.NONE
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(None, begin, node.bound_ports["PLAINTEXT"], world.now_ms)
            samples = await exposed(node)
            verifier = node.parts.data_path.verifier
            assert samples.value(STABLE_LAG, topic="t", partition="0") == 1
            assert samples.value(f"{VERIFICATION}timems_count") == verifier.times.count > 0
            assert samples.value(f"{VERIFICATION}failurerate_count") == verifier.failure_count
            assert samples.value(f"{MARKERS}_unknowndestinationqueuesize") == 0
            assert samples.value(f"{TRANSACTIONS}_partition_load_time_max") >= 0
            assert samples.value(LATE) == 0
            await loop.run_in_executor(None, producers[0].commit_transaction, 20)
            assert (await exposed(node)).value(STABLE_LAG, topic="t", partition="0") == 0
            producers.pop()

    run(scenario)


class Waiting(DelayedOperation):
    def try_complete(self) -> bool:
        return False

    def on_expiration(self) -> None:
        pass

    def on_failure(self, error: Exception) -> None:
        raise error


def test_produce_requests_that_time_out_are_told_apart() -> None:
    async def scenario() -> None:
        async with World().running() as (node, _):
            produces, fetches = (Purgatory(asyncio.get_running_loop(), name) for name in ("Produce", "Fetch"))
            for purgatory in (produces, produces, fetches):
                purgatory.watch(Waiting(), ["t"], 60_000)
            produces.expire_all()
            samples = await read(WaitingReader(node.parts.data_path.sessions, produces, fetches))
            assert samples.value("kafka_server_delayedproducemetrics_expires_total") == 2
            assert samples.value("penstock_purgatory_expired_total", delayedOperation="Fetch") == 0
            fetches.expire_all()

    run(scenario)


def test_the_size_of_a_log_is_told_in_percent_of_its_retention() -> None:
    assert [retention_percent(150, retention) for retention in (-1, 0, 100, 1000)] == [0, 0, 150, 15]

    async def scenario() -> None:
        async with World(metrics_per_partition="true").running() as (node, connection):
            await create_topic(connection, "t", retention_bytes="1000")
            await produce(connection, "t", b"x" * 500)
            name = "kafka_log_log_retentionsizeinpercent"
            assert 50 < (await exposed(node)).value(name, topic="t", partition="0") < 100

    run(scenario)


async def say(connection: Connection, name: str, version: str) -> None:
    await connection.call(ApiVersionsRequest(client_software_name=name, client_software_version=version))


def test_connections_are_told_by_client_software_and_bounded() -> None:
    async def scenario() -> None:
        async with World().running() as (node, connection):
            place = {"listener": "PLAINTEXT", "networkProcessor": "0"}
            both = {"clientSoftwareName": "librdkafka", "clientSoftwareVersion": "2.3"}
            rest = {"clientSoftwareName": OTHER_SOFTWARE, "clientSoftwareVersion": OTHER_SOFTWARE}
            port = node.bound_ports["PLAINTEXT"]
            await say(connection, "librdkafka", "2.3")
            async with AsyncExitStack() as stack:
                await say(await stack.enter_async_context(await connect("127.0.0.1", port)), "librdkafka", "2.3")
                assert (await exposed(node)).value(SOFTWARE, **both, **place) == 2
                for number in range(SOFTWARE_MAX + 1):
                    await say(await stack.enter_async_context(await connect("127.0.0.1", port)), "mine", str(number))
                samples = await exposed(node)
                assert len(samples.labels(SOFTWARE)) == SOFTWARE_MAX + 1
                assert samples.value(SOFTWARE, **both, **place) == 2
                assert samples.value(SOFTWARE, **rest, **place) == 2

    run(scenario)
