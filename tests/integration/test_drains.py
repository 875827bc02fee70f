"""A broker is drained and takes its leaderships back, another one comes and is decommissioned, under steady load."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from cluster_views import ask
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from kio.schema.alter_partition_reassignments.v1.response import AlterPartitionReassignmentsResponse
from kio.schema.types import BrokerId
from kio.schema.unregister_broker.v0.request import UnregisterBrokerRequest
from kio.schema.unregister_broker.v0.response import UnregisterBrokerResponse
from replicated_cluster import DEADLINE_S, RECORDS_BETWEEN_FAULTS, TOPIC, ReplicatedCluster
from waiting import wait_for

from penstock.client.client_log import SILENT_LOGGER
from penstock.local.cluster import LocalCluster
from penstock.protocol.ids import NodeId
from penstock.quorum.configs.own_keys import BROKER_DRAINED
from penstock.quorum.inspection.stored_metadata import open_folder
from penstock.quorum.metadata.image import MetadataImage
from penstock.quorum.planning.decommission import decommission_state, next_moves
from penstock.quorum.planning.maintenance import maintenance_state
from penstock.quorum.planning.moves import Move, move_request
from penstock.quorum.planning.reassignment import plan_reassignment
from penstock.storage.disk.files import DiskFiles

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

DRAINED_ID = 2
ADDED_ID = NodeId(4)
PARTITIONS = 6
# Each node is preferred for two of the partitions.
ASSIGNMENT = [[index % 3 + 1, (index + 1) % 3 + 1, (index + 2) % 3 + 1] for index in range(PARTITIONS)]


def asking(cluster: LocalCluster) -> AdminClient:
    """A new one for each question: librdkafka forgets a broker that metadata lack while it restarts.

    Asked for it by its id, it then waits, and does not look at the metadata again.
    """
    return AdminClient({"bootstrap.servers": cluster.bootstrap}, logger=SILENT_LOGGER)


def set_drained(cluster: LocalCluster, value: str | None, node_id: int = DRAINED_ID) -> None:
    """As `kafka-configs` does, which asks the broker itself."""
    operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
    entry = ConfigEntry(BROKER_DRAINED, value or "", incremental_operation=operation)
    resource = ConfigResource(ResourceType.BROKER, str(node_id), incremental_configs=[entry])
    admin = asking(cluster)
    [changed] = admin.incremental_alter_configs([resource]).values()
    changed.result(DEADLINE_S)


def described(cluster: LocalCluster) -> tuple[str | None, bool]:
    """Return the value that is shown, and whether it may be changed."""
    resource = ConfigResource(ResourceType.BROKER, str(DRAINED_ID))
    admin = asking(cluster)
    [found] = admin.describe_configs([resource]).values()
    entry = found.result(DEADLINE_S)[BROKER_DRAINED]
    return entry.value, not entry.is_read_only


def led_by(world: ReplicatedCluster, node_id: int) -> list[int]:
    return [index for index, leader in world.leaders().items() if leader == node_id]


def image_of(cluster: LocalCluster) -> MetadataImage:
    return open_folder(DiskFiles(), str(cluster.nodes[1].data)).image_at().image


def begin(cluster: LocalCluster, moves: Sequence[Move]) -> None:
    answer = ask(cluster.nodes[1].address, move_request(moves), AlterPartitionReassignmentsResponse)
    codes = [int(partition.error_code) for topic in answer.responses for partition in topic.partitions]
    assert codes == [0] * len(moves)


def is_active(image: MetadataImage, node_id: NodeId) -> bool:
    return node_id in image.brokers and not image.brokers[node_id].is_fenced


def is_moving(image: MetadataImage) -> bool:
    partitions = [one for topic in image.topics.by_id.values() for one in topic.partitions]
    return any(one.adding_replicas or one.removing_replicas for one in partitions)


def grow_and_decommission(cluster: LocalCluster) -> None:
    """Let a fourth broker take its share by a plan, and give all of it up again, two partitions at a time."""
    cluster.add_node()
    # The disk of node 1 may have less than the node that the new broker asked, and than the answer to a request.
    wait_for(lambda: is_active(image_of(cluster), ADDED_ID), "the new broker is registered and not fenced")
    moves = plan_reassignment(image_of(cluster), topics=[TOPIC])
    assert len(moves) >= PARTITIONS * 3 // 4
    begin(cluster, moves)

    def is_carried_out() -> bool:
        image = image_of(cluster)
        return decommission_state(image, ADDED_ID).replica_count == len(moves) and not is_moving(image)

    wait_for(is_carried_out, "the plan is carried out")
    set_drained(cluster, "true", ADDED_ID)
    wait_for(lambda: maintenance_state(image_of(cluster), ADDED_ID).leadership_count == 0, "it leads nothing")

    def is_free() -> bool:
        image = image_of(cluster)
        due = next_moves(image, ADDED_ID, moving_max=2)
        if due:
            begin(cluster, due)
        return decommission_state(image, ADDED_ID).may_unregister

    wait_for(is_free, "it has no replicas", interval_s=0.2)
    assert maintenance_state(image_of(cluster), ADDED_ID).may_stop
    cluster.stop_node(ADDED_ID)
    answer = ask(
        cluster.nodes[1].address, UnregisterBrokerRequest(broker_id=BrokerId(ADDED_ID)), UnregisterBrokerResponse
    )
    assert int(answer.error_code) == 0
    cluster.forget_node(ADDED_ID)


def test_drains_and_a_decommission_cost_nothing_acknowledged(tmp_path: Path) -> None:
    with LocalCluster(tmp_path / "cluster", node_count=3) as cluster:
        world = ReplicatedCluster(cluster, partitions=PARTITIONS, assignment=ASSIGNMENT)
        preferred = [index for index, replicas in enumerate(ASSIGNMENT) if replicas[0] == DRAINED_ID]
        with world.writer() as writer:
            world.balance()
            writer.wait_acknowledged(RECORDS_BETWEEN_FAULTS, timeout_s=DEADLINE_S)
            set_drained(cluster, "true")
            # Other nodes learn it from the log; the broker that was asked answers once it knows.
            wait_for(lambda: not led_by(world, DRAINED_ID), "the drained broker leads nothing")
            assert described(cluster) == ("true", True)
            world.wait_in_sync()
            writer.wait_acknowledged(RECORDS_BETWEEN_FAULTS, timeout_s=DEADLINE_S)

            cluster.restart_node(DRAINED_ID)
            world.wait_in_sync()
            world.elect_preferred()
            assert led_by(world, DRAINED_ID) == []
            # What another broker leads goes to the third one, not to the drained one.
            cluster.stop_node(1)
            wait_for(lambda: set(world.leaders().values()) == {3}, "the only other broker leads all")
            writer.wait_acknowledged(RECORDS_BETWEEN_FAULTS, timeout_s=DEADLINE_S)
            cluster.start_node(1)
            world.wait_in_sync()
            world.elect_preferred()

            set_drained(cluster, None)
            wait_for(lambda: led_by(world, DRAINED_ID) == preferred, "its leaderships are back")
            writer.wait_acknowledged(RECORDS_BETWEEN_FAULTS, timeout_s=DEADLINE_S)

            grow_and_decommission(cluster)
            world.wait_in_sync()
            writer.wait_acknowledged(RECORDS_BETWEEN_FAULTS, timeout_s=DEADLINE_S)
        world.check(writer)
    world.check_replicas_equal()
