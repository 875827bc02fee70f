"""How long clients hear of brokers that were fenced."""

from __future__ import annotations

from uuid import UUID

import pytest

from penstock.broker.cluster.rules.recent_departures import LISTED_MS, RecentDepartures
from penstock.protocol.ids import BrokerEpoch, NodeId
from penstock.protocol.structs import replace
from penstock.quorum.metadata.delta import MetadataDelta
from penstock.quorum.metadata.image import EMPTY_IMAGE, BrokerRegistration, MetadataImage

PEER = NodeId(2)


class World:
    def __init__(self) -> None:
        self.now_ms = 1_000
        self.image = EMPTY_IMAGE
        self.departures = RecentDepartures(lambda: self.now_ms)
        self.publish(
            MetadataImage(
                brokers={
                    node_id: BrokerRegistration(
                        id=node_id, epoch=BrokerEpoch(1), incarnation_id=UUID(int=node_id), is_fenced=False
                    )
                    for node_id in (NodeId(1), PEER)
                }
            )
        )

    def publish(self, image: MetadataImage) -> None:
        delta, self.image = MetadataDelta(self.image), image
        self.departures.publish(delta, image)

    def change(self, **changes: object) -> None:
        broker = replace(self.image.brokers[PEER], **changes)  # type: ignore[arg-type]
        self.publish(replace(self.image, brokers={**self.image.brokers, PEER: broker}))


@pytest.fixture
def world() -> World:
    return World()


def test_a_broker_that_is_fenced_is_told_of_for_as_long_as_a_session(world: World) -> None:
    assert world.departures.broker_ids == set()
    world.change(is_fenced=True)
    world.now_ms += LISTED_MS - 1
    # A change that does not concern it makes it no longer.
    world.change(rack="another")
    assert world.departures.broker_ids == {PEER}
    world.now_ms += 1
    assert world.departures.broker_ids == set()


def test_a_broker_that_is_back_and_gone_again_begins_anew(world: World) -> None:
    world.change(is_fenced=True)
    world.change(epoch=BrokerEpoch(2))
    assert world.departures.broker_ids == {PEER}
    world.change(is_fenced=False)
    assert world.departures.broker_ids == set()
    world.now_ms += LISTED_MS
    world.change(is_fenced=True)
    assert world.departures.broker_ids == {PEER}


def test_a_broker_that_was_removed_is_not_told_of(world: World) -> None:
    world.change(is_fenced=True)
    world.publish(replace(world.image, brokers={NodeId(1): world.image.brokers[NodeId(1)]}))
    assert world.departures.broker_ids == set()


@pytest.mark.parametrize(
    "changes",
    [({"in_controlled_shutdown": True}, {"is_fenced": True}), ({"in_controlled_shutdown": True, "is_fenced": True},)],
)
def test_a_broker_that_said_that_it_goes_is_not_told_of(world: World, changes: tuple[dict[str, object], ...]) -> None:
    for change in changes:
        world.change(**change)
    assert world.departures.broker_ids == set()
