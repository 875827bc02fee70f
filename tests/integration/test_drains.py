"""A broker is drained before work on it, restarted, and takes its leaderships back, under a record each 10 ms."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from replicated_cluster import DEADLINE_S, RECORDS_BETWEEN_FAULTS, ReplicatedCluster
from waiting import wait_for

from penstock.client.client_log import SILENT_LOGGER
from penstock.local.cluster import LocalCluster
from penstock.quorum.configs.own_keys import BROKER_DRAINED

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

DRAINED_ID = 2
PARTITIONS = 6
# Each node is preferred for two of the partitions.
ASSIGNMENT = [[index % 3 + 1, (index + 1) % 3 + 1, (index + 2) % 3 + 1] for index in range(PARTITIONS)]


def set_drained(admin: AdminClient, value: str | None) -> None:
    """As `kafka-configs` does, which asks the broker itself."""
    operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
    entry = ConfigEntry(BROKER_DRAINED, value or "", incremental_operation=operation)
    resource = ConfigResource(ResourceType.BROKER, str(DRAINED_ID), incremental_configs=[entry])
    [changed] = admin.incremental_alter_configs([resource]).values()
    changed.result(DEADLINE_S)


def described(admin: AdminClient) -> tuple[str | None, bool]:
    """Return the value that is shown, and whether it may be changed."""
    resource = ConfigResource(ResourceType.BROKER, str(DRAINED_ID))
    [found] = admin.describe_configs([resource]).values()
    entry = found.result(DEADLINE_S)[BROKER_DRAINED]
    return entry.value, not entry.is_read_only


def led_by(world: ReplicatedCluster, node_id: int) -> list[int]:
    return [index for index, leader in world.leaders().items() if leader == node_id]


def test_a_drained_broker_leads_nothing_through_restarts_until_it_is_undrained(tmp_path: Path) -> None:
    with LocalCluster(tmp_path / "cluster", node_count=3) as cluster:
        world = ReplicatedCluster(cluster, partitions=PARTITIONS, assignment=ASSIGNMENT)
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap}, logger=SILENT_LOGGER)
        preferred = [index for index, replicas in enumerate(ASSIGNMENT) if replicas[0] == DRAINED_ID]
        with world.writer() as writer:
            world.balance()
            writer.wait_acknowledged(RECORDS_BETWEEN_FAULTS, timeout_s=DEADLINE_S)
            set_drained(admin, "true")
            # Other nodes learn it from the log; the broker that was asked answers once it knows.
            wait_for(lambda: not led_by(world, DRAINED_ID), "the drained broker leads nothing")
            assert described(admin) == ("true", True)
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

            set_drained(admin, None)
            wait_for(lambda: led_by(world, DRAINED_ID) == preferred, "its leaderships are back")
            writer.wait_acknowledged(RECORDS_BETWEEN_FAULTS, timeout_s=DEADLINE_S)
        world.check(writer)
    world.check_replicas_equal()
