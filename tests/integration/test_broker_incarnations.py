"""One process after the other under one broker id: who takes the place, who is refused, who leads afterwards."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path

import pytest
from cluster_views import DEADLINE_S, ask, brokers, create_topic, leaders, metadata
from fourth_broker import FourthBroker
from kio.schema.elect_leaders.v2.request import ElectLeadersRequest, TopicPartitions
from kio.schema.elect_leaders.v2.response import ElectLeadersResponse
from kio.schema.types import TopicName
from kio.static.primitive import i8, i32, i32Timedelta
from waiting import wait_for

from penstock.local.cluster import LocalCluster

# Sessions that end within the test, such that do so though a busy machine is slow, and such that do not.
SHORT = {"broker.session.timeout.ms": "1500", "broker.heartbeat.interval.ms": "200"}
USUAL = {"broker.session.timeout.ms": "9000", "broker.heartbeat.interval.ms": "200"}
LONG = {"broker.session.timeout.ms": "120000", "broker.heartbeat.interval.ms": "200"}
UNCLEAN_ELECTION = ElectLeadersRequest(
    election_type=i8(1),
    topic_partitions=(TopicPartitions(topic=TopicName("flights"), partitions=(i32(0),)),),
    timeout=i32Timedelta.parse(timedelta(seconds=DEADLINE_S)),
)


@pytest.fixture
def session() -> Mapping[str, str]:
    """Properties of all nodes; a test may have others as its parameter."""
    return LONG


@pytest.fixture
def cluster(tmp_path: Path, session: Mapping[str, str]) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path, node_count=3, properties=session) as started:
        yield started


@pytest.fixture
def fourth(cluster: LocalCluster, tmp_path: Path, session: Mapping[str, str]) -> Iterator[FourthBroker]:
    """Broker 4, which leads the only partition of "flights"."""
    with FourthBroker(cluster, tmp_path, session) as broker:
        broker.start()
        wait_for(lambda: 4 in brokers(cluster.nodes[1].address))
        assert create_topic(cluster.nodes[1].address, "flights", {0: (4,)}).error_message is None
        yield broker


def test_a_second_living_process_under_one_id_is_refused_with_a_sentence(
    cluster: LocalCluster, fourth: FourthBroker
) -> None:
    second = fourth.another("node-4-again")
    fourth.start(second, {"initial.broker.registration.timeout.ms": "1000"})
    wait_for(lambda: not second.is_running)
    assert second.exit_status == 2
    assert second.log.read_text().splitlines()[-1] == (
        "penstock: Node 4 cannot start: DUPLICATE_BROKER_REGISTRATION: another process is broker 4, on other log "
        "directories, and was heard within its session (broker.session.timeout.ms) for 1000 ms "
        "(initial.broker.registration.timeout.ms)"
    )
    assert fourth.node.is_running
    assert [leader.broker_id for leader in leaders(cluster.nodes[2].address, "flights")] == [4]


def test_a_killed_process_is_followed_at_once_and_leads_with_a_higher_epoch(
    cluster: LocalCluster, fourth: FourthBroker
) -> None:
    """Its session would last for minutes; its log directories prove that it is gone."""
    address = cluster.nodes[1].address
    for _ in range(3):
        (before,) = leaders(address, "flights")
        fourth.node.kill()
        fourth.start()
        wait_for(lambda before=before: leaders(address, "flights")[0].epoch > before.epoch)  # type: ignore[misc]
        wait_for(lambda: leaders(address, "flights")[0].broker_id == 4)


# At the latest when its session ends is a killed process fenced: that it is gone cannot always be told (decision 6).
@pytest.mark.parametrize("session", [USUAL], ids=["usual session"])
def test_empty_disks_under_the_same_id_lead_nothing_and_the_old_ones_come_back(
    cluster: LocalCluster, fourth: FourthBroker
) -> None:
    address = cluster.nodes[1].address
    fourth.node.kill()
    wait_for(lambda: 4 not in brokers(address))
    empty = fourth.another("node-4-empty")
    fourth.start(empty)
    wait_for(lambda: 4 in brokers(address))
    assert [leader.broker_id for leader in leaders(address, "flights")] == [-1]
    empty.stop(timeout_s=DEADLINE_S)
    fourth.start()

    def leads() -> bool:
        # The process on empty disks may have told already where its replica is, and so that it has begun anew. Then the
        # old ones lead when an administrator says so.
        ask(address, UNCLEAN_ELECTION, ElectLeadersResponse)
        return leaders(address, "flights")[0].broker_id == 4

    wait_for(leads)


def test_empty_disks_within_the_session_of_the_old_ones_wait_for_its_end(tmp_path: Path) -> None:
    """No proof shows that the old process is gone, so its session must end; as with Apache Kafka, the new one need not
    be started again for that."""
    session = {"broker.session.timeout.ms": "4000", "broker.heartbeat.interval.ms": "200"}
    properties = {**session, "broker.fast.fencing.enable": "false"}
    with (
        LocalCluster(tmp_path, node_count=3, properties=properties) as cluster,
        FourthBroker(cluster, tmp_path, session) as fourth,
    ):
        address = cluster.nodes[1].address
        fourth.start()
        wait_for(lambda: 4 in brokers(address))
        empty = fourth.another("node-4-empty")
        fourth.start(empty)
        # However slow the machine is: it is here before the session ends.
        wait_for(lambda: "Unable to register the broker, retrying" in empty.log.read_text())
        fourth.node.kill()
        wait_for(lambda: empty.port in {int(broker.port) for broker in metadata(address).brokers})


def test_a_process_that_comes_back_after_its_place_was_taken_ends_with_a_sentence(tmp_path: Path) -> None:
    """It stood still for longer than its session, as a virtual machine may that was moved."""
    with (
        LocalCluster(tmp_path, node_count=3, properties=SHORT) as cluster,
        FourthBroker(cluster, tmp_path, SHORT) as fourth,
    ):
        address = cluster.nodes[1].address
        fourth.start()
        fourth.wait_ready()
        fourth.node.pause()
        wait_for(lambda: 4 not in brokers(address))
        second = fourth.another("node-4-again")
        fourth.start(second)
        wait_for(lambda: 4 in brokers(address))
        fourth.node.resume()
        wait_for(lambda: not fourth.node.is_running)
        assert fourth.node.exit_status == 1
        assert "Another process has taken the place of this one as broker 4" in fourth.node.log.read_text()
        assert second.is_running
        assert 4 in brokers(address)
