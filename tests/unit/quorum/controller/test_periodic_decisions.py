"""The active controller elects of itself, at its intervals."""

import asyncio
from uuid import UUID

from puppet_engine import Puppet, activate, on_a_loop
from typed_ids import node_ids
from waiting import loop_until

from penstock.protocol.ids import BrokerEpoch, LeaderEpoch, NodeId, PartitionEpoch, TopicId
from penstock.quorum.controller.controller import Controller
from penstock.quorum.controller.periodic_decisions import PeriodicDecisions
from penstock.quorum.decisions.context import ControllerResult
from penstock.quorum.decisions.periodic_elections import balance_leaders, elect_where_unclean
from penstock.quorum.metadata.image import ConfigResourceType
from penstock.quorum.metadata.records import (
    NO_LEADER,
    ConfigRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)

TOPIC_ID = TopicId(UUID(int=900))
DIRECTORIES = (UUID(int=501), UUID(int=502))
# Broker 2 leads a partition that 1 would lead by preference.
IMBALANCED: tuple[MetadataRecord, ...] = (
    *(
        RegisterBrokerRecord(
            broker_id=NodeId(index + 1),
            incarnation_id=UUID(int=index),
            broker_epoch=BrokerEpoch(5),
            is_fenced=False,
            log_dirs=(directory,),
        )
        for index, directory in enumerate(DIRECTORIES)
    ),
    TopicRecord(name="t", topic_id=TOPIC_ID),
    PartitionRecord(
        topic_id=TOPIC_ID,
        partition_id=0,
        replicas=node_ids(1, 2),
        isr=node_ids(1, 2),
        leader=NodeId(2),
        leader_epoch=LeaderEpoch(0),
        partition_epoch=PartitionEpoch(0),
        directories=DIRECTORIES,
    ),
)


@on_a_loop
async def test_preferred_replicas_get_their_leaderships_back_without_being_asked(
    puppet: Puppet, controller: Controller
) -> None:
    puppet.elect(NodeId(2))
    puppet.hear(*IMBALANCED)
    activate(puppet)
    upkeep = PeriodicDecisions(controller, {elect_where_unclean: 5, balance_leaders: 5})
    duty = asyncio.ensure_future(upkeep.run())

    def has_its_leadership_back() -> bool:
        puppet.commit()
        partition = controller.image.topics.partition("t", 0)
        return partition is not None and partition.leader == 1

    await loop_until(has_its_leadership_back, "leadership of the preferred replica")
    duty.cancel()
    await asyncio.wait([duty])


LEADERLESS = (
    *(one for one in IMBALANCED if not isinstance(one, PartitionRecord)),
    ConfigRecord(
        resource_type=ConfigResourceType.TOPIC,
        resource_name="t",
        name="unclean.leader.election.enable",
        value="true",
    ),
    PartitionRecord(
        topic_id=TOPIC_ID,
        partition_id=0,
        replicas=node_ids(1, 2, 3),
        isr=node_ids(3),
        leader=NO_LEADER,
        leader_epoch=LeaderEpoch(0),
        partition_epoch=PartitionEpoch(0),
        directories=(*DIRECTORIES, DIRECTORIES[0]),
    ),
)


@on_a_loop
async def test_unclean_elections_are_counted(puppet: Puppet, controller: Controller) -> None:
    puppet.elect(NodeId(2))
    puppet.hear(*LEADERLESS)
    activate(puppet)
    assert controller.unclean_election_count == 0
    upkeep = PeriodicDecisions(controller, {elect_where_unclean: 5})
    duty = asyncio.ensure_future(upkeep.run())

    def has_a_leader() -> bool:
        puppet.commit()
        partition = controller.image.topics.partition("t", 0)
        return partition is not None and partition.leader != NO_LEADER

    await loop_until(has_a_leader, "an unclean leader")
    assert controller.unclean_election_count == 1
    duty.cancel()
    await asyncio.wait([duty])


ELIGIBLE = (
    *(one for one in IMBALANCED if not isinstance(one, PartitionRecord)),
    PartitionRecord(
        topic_id=TOPIC_ID,
        partition_id=0,
        replicas=node_ids(1, 2),
        isr=(),
        elr=node_ids(2),
        leader=NO_LEADER,
        leader_epoch=LeaderEpoch(0),
        partition_epoch=PartitionEpoch(0),
        directories=DIRECTORIES,
    ),
)


@on_a_loop
async def test_leaders_from_the_elr_are_counted_apart_from_others(puppet: Puppet, controller: Controller) -> None:
    """KIP-966: ElectionFromEligibleLeaderReplicasPerSec."""

    async def lead(leader: NodeId) -> None:
        change = PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=0, isr=(leader,), leader=leader, elr=())
        answer = asyncio.ensure_future(
            controller.submit(
                lambda _image, _request, _context: ControllerResult(records=(change,), response=None), None
            )
        )
        await loop_until(lambda: bool(puppet.waiting), "a proposal")
        puppet.commit()
        await answer

    puppet.elect(NodeId(2))
    puppet.hear(*ELIGIBLE)
    activate(puppet)
    assert controller.eligible_election_count == 0
    await lead(NodeId(2))
    assert (controller.eligible_election_count, controller.unclean_election_count) == (1, 0)
    # It is in the ISR now, and the other one in neither.
    await lead(NodeId(2))
    await lead(NodeId(1))
    assert controller.eligible_election_count == 1
