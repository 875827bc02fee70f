"""No partition is ever owned by two members, when members join, leave, die or are not heard, and coordinators move.

Members do as real ones: they give up what they are told to when they get round to it, do not hear every answer, are
fenced and join again, and change what they read. After every event is checked that

- no two members that are in the group own a partition, by what they think as by what the coordinator thinks;
- what the coordinator thinks is what its log says;
- the epochs of the group, of its target assignment and of each member never go back;
- and in the end, when all are heard, that every partition that is read has an owner.
"""

from __future__ import annotations

import os
from contextlib import suppress
from random import Random

import pytest
from consumer_puppet import ConsumerPuppet, topic_id
from group_puppet import SETTINGS

from penstock.broker.groups.consumer.group import ConsumerGroup
from penstock.protocol.errors import ErrorCode, KafkaError

SEEDS = 400 if os.environ.get("PENSTOCK_TEST_PROFILE") == "soak" else 20
EVENTS = 150
TOPICS = ("a", "b", "c")
NAMES = tuple("uvwxyz")


class RandomMember:
    """`owned` is what it reads from; `told` what it should, when it gets round to it."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.instance = f"i-{name}" if world.random.random() < 0.4 else None
        self.assignor = world.random.choice([None, "uniform", "range"])
        self.incarnation = 0
        self.begin()

    def begin(self) -> None:
        """A new process."""
        self.incarnation += 1
        self.is_running = True
        self.epoch = 0
        self.says_all = True
        self.topics = self.world.random_topics()
        self.owned: dict[str, frozenset[int]] = {}
        self.told: dict[str, frozenset[int]] = {}

    @property
    def id(self) -> str:
        return f"{self.name}{self.incarnation}"

    def beat(self, *, is_heard: bool = False) -> None:
        """A new process, and one that has not heard the last answer, says everything; `is_heard`: it hears this one."""
        random = self.world.random
        if not is_heard and self.epoch and random.random() < 0.1:
            self.topics = self.world.random_topics()
            self.says_all = True
        try:
            response = self.world.puppet.beat(
                self.id,
                self.epoch,
                owned=self.may_own if self.epoch else {},
                topics=self.topics if self.says_all else None,
                instance=self.instance,
                assignor=self.assignor,
                rebalance_ms=60_000 if self.says_all else -1,
            )
        except KafkaError as error:
            self._on_error(error)
            return
        if self.epoch and not is_heard and random.random() < 0.15:
            self.says_all = True
            return
        self.says_all = False
        self.epoch = int(response.member_epoch)
        if response.assignment is not None:
            self.told = {
                name: frozenset(map(int, topic.partitions))
                for topic in response.assignment.topic_partitions
                for name in TOPICS
                if topic.topic_id == topic_id(name)
            }

    def _on_error(self, error: KafkaError) -> None:
        expected = {
            ErrorCode.FENCED_MEMBER_EPOCH,
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.UNRELEASED_INSTANCE_ID,
            ErrorCode.FENCED_INSTANCE_ID,
            ErrorCode.GROUP_ID_NOT_FOUND,
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
        }
        assert error.code in expected, f"{error.code.name}: {error.message}"
        if error.code is ErrorCode.FENCED_INSTANCE_ID:
            self.is_running = False
        if error.code is not ErrorCode.COORDINATOR_NOT_AVAILABLE:
            self.epoch, self.owned, self.told = 0, {}, {}
            self.says_all = True

    def obey(self) -> None:
        self.owned = self.told

    def leave(self, epoch: int) -> None:
        self.is_running = False
        if self.epoch:
            try:
                self.world.puppet.beat(self.id, epoch, instance=self.instance)
            except KafkaError as error:
                self._on_error(error)

    @property
    def may_own(self) -> dict[str, frozenset[int]]:
        """With what it was told of and has not begun with: who reported less could begin with it after it was given to
        another, when it does not hear of that. KIP-848 leaves this to the members."""
        names = {*self.owned, *self.told}
        return {name: self.owned.get(name, frozenset()) | self.told.get(name, frozenset()) for name in names}

    @property
    def partitions(self) -> set[tuple[str, int]]:
        return {(topic, one) for topic, of_topic in self.owned.items() for one in of_topic}


class World:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.counts = {"a": 4, "b": 3}
        interval_ms = self.random.choice([0, 1_000])
        self.puppet = ConsumerPuppet(self.counts, settings=SETTINGS._replace(assignment_interval_ms=interval_ms))
        self.members: list[RandomMember] = []
        self._epochs: tuple[int, int] = (0, 0)
        self._member_epochs: dict[str, int] = {}

    def random_topics(self) -> list[str]:
        return self.random.sample(TOPICS, self.random.randint(1, 3))

    @property
    def running(self) -> list[RandomMember]:
        return [member for member in self.members if member.is_running]

    def event(self) -> None:
        random = self.random
        kind = random.choices(
            ["start", "beat", "obey", "leave", "static leave", "die", "time", "move", "topics", "refuse"],
            [8, 40, 25, 3, 3, 2, 12, 4, 2, 2],
        )[0]
        if kind == "start":
            self._start()
        elif kind == "time":
            with suppress(KafkaError):
                # What could not be written is tried again later.
                self.puppet.timers.wait(random.choice([100, 1_000, 5_000, 20_000]))
        elif kind == "move":
            self.puppet = self.puppet.successor()
        elif kind == "topics":
            self._change_topics()
        elif kind == "refuse":
            self.puppet.log.refuses = ErrorCode.COORDINATOR_NOT_AVAILABLE
        elif self.running:
            self._event_of(random.choice(self.running), kind)

    def _event_of(self, member: RandomMember, kind: str) -> None:
        if kind == "beat":
            member.beat()
        elif kind == "obey":
            member.obey()
        elif kind == "die":
            member.is_running = False
        else:
            member.leave(-2 if kind == "static leave" and member.instance else -1)

    def _start(self) -> None:
        stopped = [member for member in self.members if not member.is_running]
        fresh = set(NAMES) - {member.name for member in self.members}
        if stopped and self.random.random() < 0.5:
            member = self.random.choice(stopped)
            member.begin()
            member.beat()
        elif fresh:
            member = RandomMember(self, self.random.choice(sorted(fresh)))
            self.members.append(member)
            member.beat()

    def _change_topics(self) -> None:
        topic = self.random.choice(TOPICS)
        if topic == "c" and topic in self.counts and self.random.random() < 0.5:
            del self.counts[topic]
        else:
            self.counts[topic] = self.counts.get(topic, 0) + 1
        self.puppet.change_topics(self.counts, are_some_new=True)

    # What must hold.

    def check(self) -> None:
        group = next(self.puppet.shard.groups.consumer_groups, None)
        if group is None:
            return
        self._check_clients(group)
        self._check_coordinator(group)
        self._check_epochs(group)

    def check_log(self) -> None:
        here, later = (next(one.shard.groups.consumer_groups, None) for one in (self.puppet, self.puppet.successor()))
        assert (here is None) == (later is None)
        if here is not None and later is not None:
            assert facts(later) == facts(here), "the log says what the coordinator thinks"

    def _check_clients(self, group: ConsumerGroup) -> None:
        owners: dict[tuple[str, int], str] = {}
        for member in self.running:
            known = group.members.get(member.id)
            if known is None or member.epoch == 0:
                # It will hear of that, and is fenced as long.
                continue
            for one in member.partitions:
                assert one not in owners, f"{one} is owned by {owners[one]} and {member.id}"
                owners[one] = member.id

    def _check_coordinator(self, group: ConsumerGroup) -> None:
        owned = [
            (topic, partition)
            for member in group.members.values()
            for part in (member.current.assigned, member.current.pending_revocation)
            for topic, partitions in part.items()
            for partition in partitions
        ]
        assert len(owned) == len(set(owned)), "the coordinator gives nothing twice"
        assert all(group.owner_epoch(*one) is not None for one in owned)
        targets = [
            (topic, one) for target in group.targets.values() for topic, of_topic in target.items() for one in of_topic
        ]
        assert len(targets) == len(set(targets)), "a target assignment gives nothing twice"

    def _check_epochs(self, group: ConsumerGroup) -> None:
        epochs = (group.epoch, group.target_epoch)
        assert epochs[0] >= self._epochs[0], "the epoch of the group rises"
        assert epochs[1] >= self._epochs[1], "the epoch of the target assignment rises"
        assert epochs[1] <= epochs[0]
        self._epochs = epochs
        for member in group.members.values():
            if member.current.epoch > 0:
                assert member.current.epoch >= self._member_epochs.get(member.id, 0), "a member's epoch rises"
                self._member_epochs[member.id] = member.current.epoch

    def settle(self) -> None:
        """All that still run are heard, as long as it takes; those that do not are found out."""
        for _ in range(60):
            self.puppet.timers.wait(2_000)
            for member in self.running:
                member.obey()
                member.beat(is_heard=True)
                self.check()
        group = next(self.puppet.shard.groups.consumer_groups, None)
        if group is None or not self.running:
            return
        read = {topic for member in self.running for topic in member.topics if topic in self.counts}
        owned = {one for member in self.running for one in member.partitions}
        assert owned == {(topic, one) for topic in read for one in range(self.counts[topic])}
        assert group.state.value == "Stable"


def facts(group: ConsumerGroup) -> tuple[object, ...]:
    return (
        group.epoch,
        group.metadata_hash,
        group.target_epoch,
        group.target_timestamp_ms,
        group.members,
        {member_id: dict(target) for member_id, target in group.targets.items()},
        group.static_members,
        dict(group.topic_counts),
    )


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_partition_has_two_owners(seed: int) -> None:
    """To replay a seed: pytest tests/unit/broker/groups/consumer/test_ownership.py -k 'owners[7]', with its number.

    Higher ones with PENSTOCK_TEST_PROFILE=soak.
    """
    world = World(seed)
    for number in range(EVENTS):
        world.event()
        world.check()
        if number % 10 == 0:
            world.check_log()
    world.puppet.log.refuses = None
    world.settle()
    world.check_log()
