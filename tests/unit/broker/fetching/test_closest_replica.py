"""Which replica a leader sends a consumer to (KIP-392)."""

import pytest
from replica import Replica

from penstock.broker.fetching.rules.closest_replica import Reader, closest_replica
from penstock.protocol.structs import replace
from penstock.quorum.metadata.records import Endpoint

LISTENER = "PLAINTEXT"


class Placed:
    """Broker 1 leads in rack a; 2 and 3 follow, in rack b; all have ten records."""

    def __init__(self) -> None:
        self.replica = Replica(end=10)
        self.replica.register()
        for broker_id, rack in ((1, "a"), (2, "b"), (3, "b")):
            endpoint = Endpoint(name=LISTENER, host="127.0.0.1", port=9000 + broker_id, security_protocol=0)
            self.change(broker_id, rack=rack, endpoints=(endpoint,))
        for follower in (2, 3):
            self.replica.fetch(follower, 10)

    def change(self, broker_id: int, **fields: object) -> None:
        brokers = self.replica.brokers
        changed = replace(brokers.registrations[broker_id], **fields)  # type: ignore[arg-type]
        brokers.registrations = {**brokers.registrations, broker_id: changed}

    def closest(self, *, rack: str = "b", offset: int = 5, listener: str = LISTENER) -> int | None:
        return closest_replica(
            self.replica.partition, self.replica.brokers.registrations, offset, Reader(rack, listener)
        )


@pytest.fixture
def placed() -> Placed:
    return Placed()


def test_consumer_in_the_leaders_rack_reads_from_the_leader(placed: Placed) -> None:
    placed.change(2, rack="a")
    assert placed.closest(rack="a") is None


def test_consumer_where_no_replica_is_reads_from_the_leader(placed: Placed) -> None:
    assert placed.closest(rack="c") is None


def test_consumer_elsewhere_is_sent_to_the_replica_of_its_rack_that_is_furthest(placed: Placed) -> None:
    placed.replica.append(5)
    placed.replica.fetch(2, 15)
    assert placed.closest() == 2
    placed.replica.now_ms += 1
    placed.replica.fetch(3, 15)
    # As far, and more lately.
    assert placed.closest() == 3


def test_replica_that_is_not_in_sync_is_not_read_from(placed: Placed) -> None:
    placed.replica.register(isr=(1, 2))
    assert placed.closest() == 2
    placed.replica.register(isr=(1,))
    assert placed.closest() is None


def test_replica_that_lacks_the_offset_is_not_read_from(placed: Placed) -> None:
    placed.replica.append(5)
    assert placed.closest(offset=11) is None
    for follower in (2, 3):
        placed.replica.fetch(follower, 10, start=6)
    assert placed.closest(offset=5) is None
    assert placed.closest(offset=6) == 3


def test_replica_that_the_leader_has_not_heard_in_this_epoch_is_not_read_from(placed: Placed) -> None:
    placed.replica.register(leader=1)
    assert placed.closest(offset=0) is None


def test_replica_that_the_consumer_cannot_reach_is_not_read_from(placed: Placed) -> None:
    placed.change(3, is_fenced=True)
    assert placed.closest() == 2
    assert placed.closest(listener="OTHER") is None


def test_follower_names_no_other_replica(placed: Placed) -> None:
    placed.replica.register(leader=2)
    assert placed.closest() is None
