"""What the controller does while leadership comes and goes, on an engine that does as the test says."""

import asyncio
from collections.abc import Callable
from uuid import UUID

import pytest
from metadata_cluster import CLUSTER_ID
from puppet_engine import Puppet, activate, on_a_loop, read

from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.ids import BrokerEpoch, ControllerEpoch, NodeId
from penstock.quorum.controller.controller import Controller
from penstock.quorum.decisions.context import ControllerResult, DecisionContext
from penstock.quorum.metadata.image import MetadataImage
from penstock.quorum.metadata.records import FeatureLevelRecord, RegisterBrokerRecord
from penstock.quorum.metadata.snapshot_records import image_chunks
from penstock.quorum.raft.consensus import Snapshot


def write(level: int) -> Callable[[MetadataImage, None, DecisionContext], ControllerResult[dict[str, int]]]:
    """Return a decision that writes a feature level and answers with the levels it saw before."""

    def decision(image: MetadataImage, _request: None, _context: DecisionContext) -> ControllerResult[dict[str, int]]:
        records = (FeatureLevelRecord(name="f", feature_level=level),)
        return ControllerResult(records=records, response=dict(image.features))

    return decision


def contact(
    broker_id: int, offset: int | None = None
) -> Callable[[MetadataImage, None, DecisionContext], ControllerResult[None]]:
    """Return a decision that says that a broker was heard, and where it has got."""
    result = ControllerResult(records=(), response=None, heard_broker=NodeId(broker_id), heard_offset=offset)
    return lambda _image, _request, _context: result


async def begun(
    controller: Controller,
    decision: Callable[[MetadataImage, None, DecisionContext], ControllerResult[dict[str, int]]],
) -> "asyncio.Task[dict[str, int]]":
    """Submit and let it come as far as it can."""
    task = asyncio.ensure_future(controller.submit(decision, None))
    await asyncio.sleep(0)
    return task


@on_a_loop
async def test_a_leader_answers_nothing_before_an_entry_of_its_epoch(puppet: Puppet, controller: Controller) -> None:
    puppet.elect(NodeId(1))
    with pytest.raises(KafkaError, match="No controller appears to be active") as caught:
        await controller.submit(read, None)
    assert caught.value.code == ErrorCode.NOT_CONTROLLER
    puppet.hear()
    waiting = asyncio.ensure_future(controller.wait_active())
    await asyncio.sleep(0)
    assert not waiting.done()
    puppet.commit()
    await waiting
    assert controller.image.cluster_id == CLUSTER_ID


@on_a_loop
async def test_a_leader_that_has_been_replaced_refuses_nothing(puppet: Puppet, controller: Controller) -> None:
    """One that was paused knows of no registration since: STALE_BROKER_EPOCH would end a process that is right.

    What voters said before the pause reaches it behind it, and looks fresh.
    """

    def refuse(_image: MetadataImage, _request: None, _context: DecisionContext) -> ControllerResult[None]:
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH)

    puppet.elect(NodeId(1))
    activate(puppet)
    codes = []
    for puppet.is_replaced in (False, True):
        with pytest.raises(KafkaError) as caught:
            await controller.submit(refuse, None)
        codes.append(caught.value.code)
    assert codes == [ErrorCode.STALE_BROKER_EPOCH, ErrorCode.NOT_CONTROLLER]


@on_a_loop
async def test_a_leader_that_has_been_replaced_tells_no_client_that_there_is_nothing_to_change(
    puppet: Puppet, controller: Controller
) -> None:
    """A topic that another client has deleted since is not there already, and a value that it has set is not so."""

    def change_nothing(_image: MetadataImage, _request: None, _context: DecisionContext) -> ControllerResult[str]:
        return ControllerResult(records=(), response="nothing")

    puppet.elect(NodeId(1))
    activate(puppet)
    assert await controller.submit(change_nothing, None, is_of_client=True) == "nothing"
    puppet.is_replaced = True
    with pytest.raises(KafkaError) as caught:
        await controller.submit(change_nothing, None, is_of_client=True)
    assert caught.value.code is ErrorCode.NOT_CONTROLLER


@on_a_loop
async def test_entries_of_an_earlier_epoch_do_not_activate(puppet: Puppet, controller: Controller) -> None:
    puppet.elect(NodeId(2))
    puppet.elect(NodeId(1))
    puppet.epoch = ControllerEpoch(puppet.epoch - 1)
    puppet.hear(FeatureLevelRecord(name="f", feature_level=1))
    puppet.epoch = ControllerEpoch(puppet.epoch + 1)
    states = [controller.is_active]
    puppet.hear()
    states.append(controller.is_active)
    assert states == [False, True]


@on_a_loop
async def test_a_follower_says_who_leads(puppet: Puppet, controller: Controller) -> None:
    puppet.elect(NodeId(2))
    with pytest.raises(KafkaError, match="The active controller appears to be node 2"):
        await controller.submit(read, None)


@on_a_loop
async def test_loss_of_leadership_fails_what_waits_and_forgets_it(puppet: Puppet, controller: Controller) -> None:
    activate(puppet)
    first = await begun(controller, write(1))
    second = await begun(controller, write(2))
    looking = await begun(controller, read)
    puppet.commit(1)
    assert "f" not in await first
    puppet.elect(NodeId(2))
    for task in (second, looking):
        with pytest.raises(KafkaError) as caught:
            await task
        assert caught.value.code == ErrorCode.NOT_CONTROLLER
    assert controller.image.features["f"] == 1
    puppet.hear(FeatureLevelRecord(name="f", feature_level=7))
    activate(puppet)
    third = await begun(controller, read)
    assert (await third)["f"] == 7


@on_a_loop
async def test_decisions_see_what_waits_and_answers_wait_for_what_they_saw(
    puppet: Puppet, controller: Controller
) -> None:
    activate(puppet)
    await begun(controller, write(1))
    looking = await begun(controller, read)
    assert not looking.done()
    assert controller.image.features.get("f") is None
    puppet.commit()
    assert (await looking)["f"] == 1
    assert controller.image.features["f"] == 1


@on_a_loop
async def test_a_caller_that_gives_up_changes_nothing(puppet: Puppet, controller: Controller) -> None:
    activate(puppet)
    first = await begun(controller, write(1))
    looking = await begun(controller, read)
    first.cancel()
    await asyncio.sleep(0)
    puppet.commit()
    assert (await looking)["f"] == 1


@on_a_loop
async def test_a_new_controller_gives_sessions_to_those_who_are_in_but_not_to_its_own_earlier_run(
    puppet: Puppet, controller: Controller
) -> None:
    def sessions(_image: MetadataImage, _request: None, context: DecisionContext) -> ControllerResult[list[int]]:
        return ControllerResult(
            records=(), response=[broker for broker in (1, 2, 3) if context.has_live_session(NodeId(broker))]
        )

    puppet.elect(NodeId(2))
    for broker in (1, 2, 3):
        puppet.hear(
            RegisterBrokerRecord(
                broker_id=NodeId(broker),
                incarnation_id=UUID(int=broker),
                broker_epoch=BrokerEpoch(broker),
                is_fenced=broker == 3,
            )
        )
    activate(puppet)
    assert await controller.submit(sessions, None) == [2]
    await controller.submit(contact(1), None)
    assert await controller.submit(sessions, None) == [1, 2]


@on_a_loop
async def test_an_observer_whose_disks_have_all_failed_is_still_told_of(puppet: Puppet, controller: Controller) -> None:
    puppet.elect(NodeId(2))
    puppet.hear(
        RegisterBrokerRecord(broker_id=NodeId(2), incarnation_id=UUID(int=2), broker_epoch=BrokerEpoch(2), log_dirs=())
    )
    activate(puppet)
    await controller.submit(contact(2, 3), None)
    assert [observer.replica_id for observer in controller.observers({NodeId(1)})] == [2]


@on_a_loop
async def test_an_observer_that_has_long_been_silent_is_told_of_no_more(puppet: Puppet, controller: Controller) -> None:
    puppet.elect(NodeId(2))
    puppet.hear(
        RegisterBrokerRecord(broker_id=NodeId(2), incarnation_id=UUID(int=2), broker_epoch=BrokerEpoch(2), log_dirs=())
    )
    activate(puppet)
    await controller.submit(contact(2, 3), None)
    puppet.wall_ms += 299_999
    assert [observer.replica_id for observer in controller.observers({NodeId(1)})] == [2]
    puppet.wall_ms += 1
    assert controller.observers({NodeId(1)}) == ()


@on_a_loop
async def test_a_snapshot_that_arrives_replaces_everything(puppet: Puppet, controller: Controller) -> None:
    puppet.elect(NodeId(2))
    puppet.hear(FeatureLevelRecord(name="f", feature_level=1))
    image = MetadataImage(offset=9, epoch=ControllerEpoch(3), features={"g": 2}, cluster_id=CLUSTER_ID)
    assert puppet.listener is not None
    puppet.listener.on_snapshot(Snapshot(end_offset=10, epoch=ControllerEpoch(3), chunks=list(image_chunks(image))))
    assert controller.image.features == {"g": 2}
    assert (controller.image.offset, controller.image.epoch) == (9, 3)


class Watcher:
    """Writes down what it hears (see `broker_watcher.BrokerWatcher`)."""

    def __init__(self, controller: Controller) -> None:
        self.controller = controller
        self.heard: list[object] = []

    def on_active(self, former_leader_id: int | None) -> None:
        assert self.controller.has_fresh_quorum
        self.heard.append(("active", former_leader_id))

    def on_inactive(self) -> None:
        assert not self.controller.has_fresh_quorum
        self.heard.append("inactive")

    def on_heard(self, broker_id: int, broker_epoch: int, _heard_ms: int) -> None:
        self.heard.append((broker_id, broker_epoch))


@on_a_loop
async def test_the_watch_of_brokers_sees_them_while_this_node_is_active(puppet: Puppet, controller: Controller) -> None:
    def leave(_image: MetadataImage, _request: None, _context: DecisionContext) -> ControllerResult[None]:
        return ControllerResult(records=(), response=None, heard_broker=NodeId(2), left_broker=NodeId(2))

    def is_live(_image: MetadataImage, _request: None, context: DecisionContext) -> ControllerResult[bool]:
        return ControllerResult(records=(), response=context.has_live_session(NodeId(2)))

    watcher = Watcher(controller)
    controller.watch(watcher)
    puppet.elect(NodeId(3))
    puppet.hear(RegisterBrokerRecord(broker_id=NodeId(2), incarnation_id=UUID(int=2), broker_epoch=BrokerEpoch(7)))
    puppet.elect(None)
    puppet.elect(NodeId(1))
    assert watcher.heard == ["inactive"] * 3
    puppet.hear()
    puppet.commit()
    assert watcher.heard[3:] == [("active", 3)]
    await controller.submit(contact(2), None)
    assert watcher.heard[4:] == [(2, 7)]
    assert await controller.submit(is_live, None)
    await controller.submit(leave, None)
    assert not await controller.submit(is_live, None)
    puppet.elect(NodeId(2))
    assert watcher.heard[5:] == ["inactive"]
