"""One line when a broker leaves and one when it is back in sync."""

from __future__ import annotations

import logging
from uuid import UUID

import pytest
from typed_ids import node_ids

from penstock.protocol.ids import BrokerEpoch, LeaderEpoch, NodeId, PartitionEpoch, TopicId
from penstock.protocol.structs import replace
from penstock.quorum.fencing.broker_outages import BrokerOutages
from penstock.quorum.metadata.delta import MetadataDelta
from penstock.quorum.metadata.image import (
    EMPTY_IMAGE,
    BrokerRegistration,
    PartitionRegistration,
    TopicImage,
    TopicsImage,
)
from penstock.quorum.metadata.persistent_map import PersistentMap

TOPIC_ID = TopicId(UUID(int=7))
ALL = (1, 2, 3)


class Watched:
    """The metadata of three brokers and a topic, and what the active controller says of their changes."""

    def __init__(self, *partitions: tuple[int, tuple[int, ...]], is_active: bool = True) -> None:
        """`partitions` are leader and ISR of each; all have replicas 1, 2 and 3."""
        self.now_ms = 0
        self.outages = BrokerOutages(is_active=lambda: is_active, now_ms=lambda: self.now_ms)
        self.brokers = {
            id_: BrokerRegistration(
                id=NodeId(id_), epoch=BrokerEpoch(id_), incarnation_id=UUID(int=id_), is_fenced=False
            )
            for id_ in (1, 2, 3)
        }
        self.image = EMPTY_IMAGE
        self.set(*partitions)

    def set(self, *partitions: tuple[int, tuple[int, ...]], **brokers: bool) -> None:
        """`b1=True` fences broker 1."""
        for name, is_fenced in brokers.items():
            id_ = int(name[1:])
            self.brokers[id_] = replace(self.brokers[id_], is_fenced=is_fenced)
        topic = TopicImage(
            name="t",
            topic_id=TOPIC_ID,
            partitions=tuple(
                PartitionRegistration(
                    replicas=node_ids(1, 2, 3),
                    directories=(TOPIC_ID,) * 3,
                    isr=node_ids(*isr),
                    leader=NodeId(leader),
                    leader_epoch=LeaderEpoch(0),
                    partition_epoch=PartitionEpoch(0),
                )
                for leader, isr in partitions
            ),
        )
        image = replace(
            EMPTY_IMAGE,
            brokers=dict(self.brokers),
            topics=TopicsImage(
                by_name=PersistentMap({"t": topic}),
                by_id=PersistentMap({TOPIC_ID: topic}),
                partition_count=len(partitions),
            ),
        )
        self.outages.publish(MetadataDelta.between(self.image, image), image)
        self.image = image


def test_a_fenced_broker_is_one_line_with_what_it_cost(caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched((1, ALL), (2, ALL), (2, (2,)), (3, (1, 3)))
    watched.set((1, (1, 3)), (3, (1, 3)), (-1, (2,)), (3, (1, 3)), b2=True)
    assert [record.getMessage() for record in caplog.records] == [
        "Broker left: broker=2 reason=fenced out_of_isr=2 leaders_moved=1 without_leader=1"
    ]


def test_a_broker_is_back_when_all_its_replicas_are_in_sync(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    watched = Watched((1, ALL), (1, ALL))
    watched.set((1, (1, 3)), (1, (1, 3)), b2=True)
    caplog.clear()
    watched.now_ms = 500
    watched.set((1, (1, 3)), (1, (1, 3)), b2=False)
    watched.set((1, ALL), (1, (1, 3)))
    assert not caplog.records
    watched.now_ms = 900
    watched.set((1, ALL), (1, ALL))
    watched.set((1, (1, 2)), (1, ALL))
    assert [record.getMessage() for record in caplog.records] == [
        "Broker back, all its replicas are in sync: broker=2 after_ms=900"
    ]


def test_a_broker_that_leaves_before_it_is_back_is_said_again(caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched((1, ALL))
    watched.set((1, (1, 3)), b2=True)
    watched.set((1, (1, 3)), b2=False)
    watched.set((1, (1, 3)), b2=True)
    assert len(caplog.records) == 2


def test_only_the_active_controller_says_it(caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched((1, ALL), is_active=False)
    watched.set((1, (1, 3)), b2=True)
    assert not caplog.records
