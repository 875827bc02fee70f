"""Metrics of three nodes, one of them a controller too: replication, the quorum, and a broker that goes away."""

from __future__ import annotations

from exposed_metrics import exposed
from memory_node import produce
from replicating_nodes import TOPIC, World, create, produce_some, run
from waiting import loop_until

from penstock.broker.node.server import Node
from penstock.broker.node.voter_link import VoterLink
from penstock.protocol.errors import ErrorCode
from penstock.protocol.ids import NodeId
from penstock.quorum.controller.controller import Controller
from penstock.quorum.decisions.context import ControllerResult
from penstock.quorum.metadata.records import BrokerRegistrationChangeRecord, FeatureLevelRecord

TOPIC_METRICS = "kafka_server_brokertopicmetrics"
REPLICAS = "kafka_server_replicamanager"
CONTROLLER = "kafka_controller_kafkacontroller"
RAFT = "kafka_server_raftmetrics"


def controller_of(node: Node) -> Controller:
    link = node.quorum
    assert isinstance(link, VoterLink)
    return link.controller


def test_replication_is_told_by_leader_and_follower() -> None:
    async def scenario(world: World) -> None:
        async with world.asking(2) as leader:
            await create(leader, 2, 3)
            await world.wait_in_sync(2, 3)
            await produce_some(leader, 20)
        await world.wait_equal(2, 3)
        of_leader, of_follower = await exposed(world.nodes[2]), await exposed(world.nodes[3])
        assert of_leader.value(f"{TOPIC_METRICS}_messagesin_total", topic=TOPIC) == 20
        assert of_follower.value(f"{TOPIC_METRICS}_messagesin_total", topic=TOPIC) == 0
        size = of_leader.value(f"{TOPIC_METRICS}_bytesin_total", topic=TOPIC)
        assert of_leader.value(f"{TOPIC_METRICS}_replicationbytesout_total") == size
        assert of_follower.value(f"{TOPIC_METRICS}_replicationbytesin_total") == size
        assert of_leader.value(f"{TOPIC_METRICS}_bytesout_total") == 0
        assert (of_leader.value(f"{REPLICAS}_leadercount"), of_leader.value(f"{REPLICAS}_partitioncount")) == (1, 1)
        assert (of_follower.value(f"{REPLICAS}_leadercount"), of_follower.value(f"{REPLICAS}_partitioncount")) == (0, 1)
        assert of_follower.value("penstock_fetcher_partitions", leader="2") == 1
        assert of_follower.value("kafka_server_replicafetchermanager_maxlag", clientId="Replica") == 0
        requests = of_leader.labels("kafka_network_requestmetrics_requests_total")
        assert "FetchFollower" in {one["request"] for one in requests}
        assert "FetchConsumer" not in {one["request"] for one in requests}

    run(scenario)


def test_a_broker_that_goes_away_is_told_by_leader_and_controller() -> None:
    async def scenario(world: World) -> None:
        async with world.asking(2) as leader:
            await create(leader, 2, 3)
            await world.wait_in_sync(2, 3)
            before = await exposed(world.nodes[2])
            assert before.value(f"{REPLICAS}_underreplicatedpartitions") == 0
            await world.stop(3)
            await world.wait_in_sync(2)
            assert await produce(leader, TOPIC, b"x") == ErrorCode.NONE
            after = await exposed(world.nodes[2])
            assert after.value(f"{REPLICAS}_underreplicatedpartitions") == 1
            assert after.value(f"{REPLICAS}_atminisrpartitioncount") == 1
            assert after.value(f"{REPLICAS}_underminisrpartitioncount") == 0
            controller = await exposed(world.nodes[1])
            assert controller.value(f"{CONTROLLER}_activecontrollercount") == 1
            assert controller.value(f"{CONTROLLER}_activebrokercount") == 2
            assert controller.value(f"{CONTROLLER}_fencedbrokercount") == 1
            assert controller.value(f"{CONTROLLER}_offlinepartitionscount") == 0
            await world.start(3)
            await world.wait_in_sync(2, 3)
            # The metadata may come before the answer to AlterPartition.
            expands = before.value(f"{REPLICAS}_isrexpands_total") + 1
            proposals = world.nodes[2].parts.alter_partitions
            await loop_until(lambda: proposals.expand_count == expands, "the ISR expansion counted")
            back = await exposed(world.nodes[2])
            assert back.value(f"{REPLICAS}_underreplicatedpartitions") == 0
            assert back.value(f"{REPLICAS}_isrexpands_total") == expands

    run(scenario)


def test_a_partition_without_a_leader_is_told_by_the_controller() -> None:
    async def scenario(world: World) -> None:
        async with world.asking(2) as leader:
            await create(leader, 2)
        await world.stop(2)
        controller = await exposed(world.nodes[1])
        assert controller.value(f"{CONTROLLER}_offlinepartitionscount") == 1
        assert controller.value(f"{CONTROLLER}_preferredreplicaimbalancecount") == 1

    run(scenario)


def test_voters_and_observers_tell_their_part_in_the_quorum() -> None:
    async def scenario(world: World) -> None:
        async with world.asking(2) as broker:
            await create(broker, 2, 3)
        voter, observer = await exposed(world.nodes[1]), await exposed(world.nodes[2])
        assert voter.value(f"{RAFT}_current_state", current_state="leader") == 1
        assert observer.value(f"{RAFT}_current_state", current_state="observer") == 1
        assert voter.value(f"{RAFT}_current_leader") == observer.value(f"{RAFT}_current_leader") == 1
        assert voter.value(f"{RAFT}_log_end_epoch") == voter.value(f"{RAFT}_current_epoch") > 0
        assert observer.value(f"{RAFT}_log_end_epoch") == voter.value(f"{RAFT}_log_end_epoch")
        assert (voter.value(f"{RAFT}_current_vote"), observer.value(f"{RAFT}_current_vote")) == (1, -1)
        assert voter.value(f"{RAFT}_number_of_voters") == observer.value(f"{RAFT}_number_of_voters") == 1
        assert voter.value(f"{RAFT}_log_end_offset") == voter.value(f"{RAFT}_high_watermark") > 3
        assert observer.value("kafka_server_brokermetadatametrics_last_applied_record_offset") > 3
        assert observer.labels(f"{CONTROLLER}_activecontrollercount") == []
        # Dashboards find all nodes by it.
        assert voter.value(f"{CONTROLLER}_controllerstate") == observer.value(f"{CONTROLLER}_controllerstate") == 0
        # The listener of the controller and that of the broker are told together.
        apis = {one["request"] for one in voter.labels("kafka_network_requestmetrics_requests_total")}
        assert "BrokerHeartbeat" in apis

    run(scenario)


def test_the_controller_tells_of_each_broker() -> None:
    async def scenario(world: World) -> None:
        state = f"{CONTROLLER}_brokerregistrationstate"
        heartbeat = f"{CONTROLLER}_timesincelastheartbeatreceivedms"
        before = await exposed(world.nodes[1])
        assert [before.value(state, broker=str(broker)) for broker in (1, 2, 3)] == [30, 30, 30]
        assert {one["broker"] for one in before.labels(heartbeat)} == {"1", "2", "3"}
        assert before.value(f"{CONTROLLER}_controlledshutdownbrokercount") == 0
        controller = controller_of(world.nodes[1])
        leaving = BrokerRegistrationChangeRecord(
            broker_id=NodeId(3), broker_epoch=controller.image.brokers[NodeId(3)].epoch, in_controlled_shutdown=True
        )
        await controller.submit(lambda *_: ControllerResult(records=(leaving,), response=None), None)
        while_leaving = await exposed(world.nodes[1])
        assert while_leaving.value(state, broker="3") == 20
        assert while_leaving.value(f"{CONTROLLER}_controlledshutdownbrokercount") == 1
        await world.stop(3)
        after = await exposed(world.nodes[1])
        assert after.value(state, broker="3") == 10
        assert {one["broker"] for one in after.labels(heartbeat)} == {"1", "2"}

    run(scenario)


def test_a_snapshot_of_the_metadata_is_told_with_its_size_and_age() -> None:
    async def scenario(world: World) -> None:
        size, age = (f"kafka_server_snapshotemitter_latestsnapshotgenerated{one}" for one in ("bytes", "agems"))
        before = await exposed(world.nodes[1])
        assert before.value(size) == 0
        await loop_until(lambda: controller_of(world.nodes[1]).snapshots.latest_age_ms > 50, "time passes")
        assert await controller_of(world.nodes[1]).snapshots.save_now() is not None
        after = await exposed(world.nodes[1])
        assert after.value(size) > 100
        assert after.value(age) < before.value(age) + 50
        assert controller_of(world.nodes[1]).snapshots.latest_bytes == after.value(size)

    run(scenario)


def test_features_are_told_in_kafka_s_spellings_by_every_node() -> None:
    async def scenario(world: World) -> None:
        controller = controller_of(world.nodes[1])
        lower = FeatureLevelRecord(name="transaction.version", feature_level=1)
        before = [await exposed(world.nodes[node_id]) for node_id in (1, 2)]
        await controller.submit(lambda *_: ControllerResult(records=(lower,), response=None), None)
        await loop_until(
            lambda: world.nodes[2].metadata.image.offset == controller.image.offset, "the broker has the new level"
        )
        after = [await exposed(world.nodes[node_id]) for node_id in (1, 2)]
        level = "kafka_server_metadataloader_finalizedlevel"
        assert [one.value(level, featureName="transactionVersion") for one in before] == [2, 2]
        assert [one.value(level, featureName="transactionVersion") for one in after] == [1, 1]
        for one in after:
            assert one.value("kafka_server_metadataloader_currentmetadataversion") == 30
            assert one.value("kafka_server_metadataloader_currentcontrollerid") == 1
            supported = "kafka_server_node_metrics_maximum_supported_level"
            assert one.value(supported, feature_name="transaction-version") == 2
            lowest = "kafka_server_node_metrics_minimum_supported_level"
            assert one.value(lowest, feature_name="metadata-version") == 7

    run(scenario)
