"""Which brokers are suspected, until when. Every way out of every state is walked."""

from __future__ import annotations

from uuid import UUID

import pytest

from penstock.broker.cluster.rules.suspicions import Suspicions
from penstock.protocol.ids import BrokerEpoch, NodeId
from penstock.protocol.structs import replace
from penstock.quorum.metadata.image import BrokerRegistration, MetadataImage

OWN, PEER, OTHER = NodeId(1), NodeId(2), NodeId(3)
HOLD_MS = 250
IMAGE = MetadataImage(
    brokers={
        node_id: BrokerRegistration(
            id=node_id, epoch=BrokerEpoch(10 + node_id), incarnation_id=UUID(int=node_id), is_fenced=False
        )
        for node_id in (OWN, PEER, OTHER)
    }
)


def changed(**changes: object) -> MetadataImage:
    """With another registration of the peer."""
    return replace(IMAGE, brokers={**IMAGE.brokers, PEER: replace(IMAGE.brokers[PEER], **changes)})  # type: ignore[arg-type]


def suspecting() -> Suspicions:
    suspicions = Suspicions(OWN, hold_ms=HOLD_MS)
    assert suspicions.on_closed(PEER, IMAGE, 1_000)
    return suspicions


def test_a_broker_whose_side_closes_is_suspected_and_no_other() -> None:
    suspicions = Suspicions(OWN, hold_ms=HOLD_MS)
    assert not suspicions
    assert suspicions.on_closed(PEER, IMAGE, 1_000)
    assert suspicions
    assert PEER in suspicions
    assert OTHER not in suspicions
    assert suspicions.includes_any({OTHER, PEER})
    assert not suspicions.includes_any({OWN, OTHER})
    assert (suspicions.next_end_ms, suspicions.count) == (1_000 + HOLD_MS, 1)


@pytest.mark.parametrize(
    "image",
    [
        changed(is_fenced=True),
        changed(in_controlled_shutdown=True),
        replace(IMAGE, brokers={OWN: IMAGE.brokers[OWN]}),
    ],
    ids=["fenced", "shutting down", "unknown"],
)
def test_a_broker_that_leads_nothing_is_not_suspected(image: MetadataImage) -> None:
    assert not Suspicions(OWN, hold_ms=HOLD_MS).on_closed(PEER, image, 1_000)


def test_a_broker_does_not_suspect_itself() -> None:
    assert not Suspicions(OWN, hold_ms=HOLD_MS).on_closed(OWN, IMAGE, 1_000)


def test_no_broker_is_suspected_where_it_is_switched_off() -> None:
    suspicions = Suspicions(OWN, hold_ms=0)
    assert not suspicions.on_closed(PEER, IMAGE, 1_000)
    assert not suspicions


def test_more_connections_that_close_make_no_suspicion_longer() -> None:
    suspicions = suspecting()
    assert not suspicions.on_closed(PEER, IMAGE, 1_200)
    assert suspicions.next_end_ms == 1_000 + HOLD_MS


@pytest.mark.parametrize(
    "image",
    [
        changed(is_fenced=True),
        changed(in_controlled_shutdown=True),
        changed(epoch=BrokerEpoch(99)),
        replace(IMAGE, brokers={OWN: IMAGE.brokers[OWN]}),
    ],
    ids=["fenced", "shutting down", "another process", "removed"],
)
def test_the_metadata_end_a_suspicion(image: MetadataImage) -> None:
    suspicions = suspecting()
    assert not suspicions.on_image(IMAGE)
    assert suspicions.on_image(image)
    assert not suspicions
    assert suspicions.next_end_ms is None
    assert not suspicions.on_image(image)


def test_a_sign_of_life_ends_a_suspicion() -> None:
    suspicions = suspecting()
    assert not suspicions.on_alive(OTHER)
    assert suspicions.on_alive(PEER)
    assert not suspicions


def test_time_ends_each_suspicion_by_itself() -> None:
    suspicions = suspecting()
    assert suspicions.on_closed(OTHER, IMAGE, 1_100)
    assert not suspicions.on_time(1_249)
    assert suspicions.on_time(1_250)
    assert PEER not in suspicions
    assert suspicions.next_end_ms == 1_350
    assert suspicions.on_time(1_400)
    assert not suspicions


def test_a_broker_can_be_suspected_again() -> None:
    suspicions = suspecting()
    assert suspicions.on_alive(PEER)
    assert suspicions.on_closed(PEER, IMAGE, 1_500)
    assert (suspicions.next_end_ms, suspicions.count) == (1_500 + HOLD_MS, 2)
