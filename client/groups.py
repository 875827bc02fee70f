"""Consumer groups as the terminal sees and changes them, through Kafka's admin protocol."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import click
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from msgspec import Struct

from .bootstrap import Bootstrap
from .client_log import SILENT_LOGGER
from .positions import Edge
from .topics import Topics

Place = tuple[str, int]
"""Topic and partition."""

DEAD: Final = "DEAD"
EMPTY: Final = "EMPTY"


class GroupListing(Struct, frozen=True, kw_only=True):
    name: str
    type: str
    state: str


class MemberState(Struct, frozen=True, kw_only=True):
    member_id: str
    # Of a static member.
    instance_id: str | None
    client_id: str
    host: str
    partitions: tuple[Place, ...]


class GroupState(Struct, frozen=True, kw_only=True):
    name: str
    type: str
    state: str
    assignor: str
    # The broker that coordinates the group, as host:port and id.
    coordinator: str
    members: tuple[MemberState, ...]


class Lag(Struct, frozen=True, kw_only=True):
    """How far a group has come in a partition. None: nothing was committed, or no member reads it."""

    topic: str
    partition: int
    committed: int | None
    end_offset: int | None
    member_id: str | None

    @property
    def records(self) -> int | None:
        """How many it has yet to read."""
        if self.committed is None or self.end_offset is None:
            return None
        return max(self.end_offset - self.committed, 0)


class Groups:
    """All methods raise KafkaException with the broker's own words, for `Bootstrap.sentences`, unless they say more."""

    def __init__(self, bootstrap: Bootstrap) -> None:
        """Raises ClickException at once when no broker listens there."""
        self.topics = Topics(bootstrap)
        self._bootstrap = bootstrap
        self._timeout_s = bootstrap.timeout_s
        self._admin = AdminClient(bootstrap.client_config(), logger=SILENT_LOGGER)

    def list(self) -> tuple[GroupListing, ...]:
        """All groups by name. Raises ClickException when a broker did not answer."""
        result = self._admin.list_consumer_groups(request_timeout=self._timeout_s).result()
        if result.errors:
            raise click.ClickException(f"Not all brokers answered: {self._bootstrap.sentence(result.errors[0])}")
        return tuple(
            GroupListing(name=one.group_id, type=one.type.name, state=one.state.name)
            for one in sorted(result.valid, key=lambda one: one.group_id)
        )

    def describe(self, names: Iterable[str]) -> tuple[GroupState, ...]:
        """These groups, in this order. Raises ClickException for one that does not exist."""
        futures = self._admin.describe_consumer_groups(list(names), request_timeout=self._timeout_s)
        return tuple(self._described(name, future) for name, future in futures.items())

    def _described(self, name: str, future: Any) -> GroupState:
        try:
            group = future.result()
        except KafkaException as error:
            if error.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
                raise self._absent(name) from error
            raise
        if group.state.name == DEAD:
            # The answer of brokers before Kafka 4.0.
            raise self._absent(name)
        return GroupState(
            name=name,
            type=group.type.name,
            state=group.state.name,
            assignor=group.partition_assignor,
            coordinator=f"{group.coordinator.host}:{group.coordinator.port} (id {group.coordinator.id})",
            members=tuple(
                MemberState(
                    member_id=member.member_id,
                    instance_id=member.group_instance_id,
                    client_id=member.client_id,
                    host=member.host,
                    partitions=tuple(sorted((one.topic, one.partition) for one in _assigned(member))),
                )
                for member in sorted(group.members, key=lambda member: (member.client_id, member.member_id))
            ),
        )

    def _absent(self, name: str) -> click.ClickException:
        return click.ClickException(f"Group {name!r} does not exist on {self._bootstrap}.")

    def committed(self, name: str) -> dict[Place, int]:
        """Every offset that the group has committed."""
        request = [ConsumerGroupTopicPartitions(name)]
        futures = self._admin.list_consumer_group_offsets(request, request_timeout=self._timeout_s)
        found = futures[name].result().topic_partitions or ()
        for one in found:
            if one.error is not None:
                raise KafkaException(one.error)
        return {(one.topic, one.partition): one.offset for one in found if one.offset >= 0}

    def lag(self, name: str) -> tuple[Lag, ...]:
        """Of all that the group reads or has committed, by topic and partition. ClickException if it does not exist."""
        (state,) = self.describe([name])
        return self.lag_of(state)

    def lag_of(self, state: GroupState) -> tuple[Lag, ...]:
        """As `lag`, of a group that was described."""
        owners = {place: member.member_id for member in state.members for place in member.partitions}
        committed = self.committed(state.name)
        places = sorted({*owners, *committed})
        ends = self.end_offsets(places)
        return tuple(
            Lag(
                topic=topic,
                partition=partition,
                committed=committed.get((topic, partition)),
                end_offset=ends.get((topic, partition)),
                member_id=owners.get((topic, partition)),
            )
            for topic, partition in places
        )

    def end_offsets(self, places: Sequence[Place]) -> dict[Place, int | None]:
        """Of topics that there are no more there are none."""
        existing = {state.name: {one.partition for one in state.partitions} for state in self.topics.list()}
        ends: dict[Place, int | None] = {}
        for topic in sorted({topic for topic, _ in places}):
            partitions = [
                partition for name, partition in places if name == topic and partition in existing.get(topic, ())
            ]
            for partition, offset in self.topics.offsets(topic, partitions, Edge.LATEST).items():
                ends[topic, partition] = offset
        return ends

    def commit(self, name: str, offsets: Mapping[Place, int]) -> None:
        """In the name of the group, which must have no members. Raises ClickException for what was refused."""
        places = [TopicPartition(topic, partition, offset) for (topic, partition), offset in sorted(offsets.items())]
        request = [ConsumerGroupTopicPartitions(name, places)]
        futures = self._admin.alter_consumer_group_offsets(request, request_timeout=self._timeout_s)
        refused = [one for one in futures[name].result().topic_partitions or () if one.error is not None]
        if refused:
            raise click.ClickException(
                "\n".join(
                    f"{one.topic} {one.partition} was not reset: {self._bootstrap.sentence(one.error)}"
                    for one in refused
                )
            )

    def delete(self, names: Iterable[str]) -> dict[str, KafkaError | None]:
        """By group what went wrong; None: nothing."""
        futures = self._admin.delete_consumer_groups(list(dict.fromkeys(names)), request_timeout=self._timeout_s)
        outcomes: dict[str, KafkaError | None] = {}
        for name, future in futures.items():
            try:
                future.result()
            except KafkaException as error:
                outcomes[name] = error.args[0]
            else:
                outcomes[name] = None
        return outcomes


def _assigned(member: Any) -> Sequence[TopicPartition]:
    return member.assignment.topic_partitions or () if member.assignment is not None else ()
