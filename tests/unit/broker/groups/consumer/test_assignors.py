"""What `uniform` and `range` promise: balance, as little moved as that allows, and nothing given twice."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.broker.groups.consumer.assignor import Assignor, MemberSpec
from penstock.broker.groups.consumer.member import Partitions
from penstock.broker.groups.consumer.range_assignor import RangeAssignor
from penstock.broker.groups.consumer.uniform_assignor import UniformAssignor

TOPICS = tuple(UUID(int=number) for number in range(1, 6))
UNIFORM = UniformAssignor()
RANGE = RangeAssignor()
COUNTS = st.fixed_dictionaries({topic: st.integers(1, 9) for topic in TOPICS})
SUBSCRIPTIONS = st.dictionaries(
    st.text("abcdef", min_size=1, max_size=3),
    st.frozensets(st.sampled_from(TOPICS), min_size=1),
    min_size=1,
    max_size=9,
)


def spec(*topics: UUID, assigned: Partitions | None = None, instance_id: str | None = None) -> MemberSpec:
    return MemberSpec(instance_id, frozenset(topics), assigned or {})


def size(partitions: Partitions) -> int:
    return sum(map(len, partitions.values()))


def flat(partitions: Partitions) -> set[tuple[UUID, int]]:
    return {(topic, one) for topic, of_topic in partitions.items() for one in of_topic}


def check_whole(
    assigned: Mapping[str, Partitions], members: Mapping[str, MemberSpec], counts: Mapping[UUID, int]
) -> None:
    given_out = [one for partitions in assigned.values() for one in flat(partitions)]
    assert len(given_out) == len(set(given_out)), "nothing is given twice"
    read = {topic for member in members.values() for topic in member.topic_ids}
    assert set(given_out) == {(topic, one) for topic in read for one in range(counts[topic])}
    for member_id, partitions in assigned.items():
        assert partitions.keys() <= members[member_id].topic_ids, "members get what they read"


@pytest.mark.parametrize("assignor", [UNIFORM, RANGE], ids=lambda one: one.name)
@given(subscriptions=SUBSCRIPTIONS, counts=COUNTS)
def test_every_partition_goes_to_one_member_that_reads_it(
    assignor: Assignor, subscriptions: dict[str, frozenset[UUID]], counts: dict[UUID, int]
) -> None:
    members = {member_id: spec(*topics) for member_id, topics in subscriptions.items()}
    check_whole(assignor.assign(members, counts), members, counts)


@given(
    names=st.lists(st.text("abcdef", min_size=1, max_size=3), min_size=1, max_size=9, unique=True),
    later=st.sets(st.text("abcdef", min_size=1, max_size=3), min_size=1, max_size=9),
    counts=COUNTS,
    grown=COUNTS,
)
def test_members_that_read_alike_have_equally_many_and_keep_what_they_can(
    names: list[str], later: set[str], counts: dict[UUID, int], grown: dict[UUID, int]
) -> None:
    before = UNIFORM.assign({name: spec(*TOPICS) for name in names}, counts)
    counts = {topic: max(count, grown[topic]) for topic, count in counts.items()}
    members = {name: spec(*TOPICS, assigned=before.get(name)) for name in sorted(later)}
    after = UNIFORM.assign(members, counts)
    check_whole(after, members, counts)
    sizes = [size(partitions) for partitions in after.values()]
    assert max(sizes) - min(sizes) <= 1
    quota = max(sizes)
    for name in members:
        had = flat(before.get(name, {}))
        kept = had & flat(after[name])
        assert len(kept) >= min(len(had), quota - 1), "no more is taken than balance asks for"


@given(subscriptions=SUBSCRIPTIONS, counts=COUNTS)
def test_members_that_read_differently_are_balanced_where_one_could_take_from_another(
    subscriptions: dict[str, frozenset[UUID]], counts: dict[UUID, int]
) -> None:
    members = {member_id: spec(*topics) for member_id, topics in subscriptions.items()}
    assigned = UNIFORM.assign(members, counts)
    for richer, partitions in assigned.items():
        for poorer, spec_of_poorer in members.items():
            if size(partitions) > size(assigned[poorer]) + 1:
                assert not partitions.keys() & spec_of_poorer.topic_ids, f"{richer} could give to {poorer}"


@given(subscriptions=SUBSCRIPTIONS, counts=COUNTS)
def test_what_is_balanced_stays_as_it_is(subscriptions: dict[str, frozenset[UUID]], counts: dict[UUID, int]) -> None:
    members = {member_id: spec(*topics) for member_id, topics in subscriptions.items()}
    before = UNIFORM.assign(members, counts)
    again = {name: spec(*member.topic_ids, assigned=before[name]) for name, member in members.items()}
    assert UNIFORM.assign(again, counts) == before


def test_topics_of_equal_counts_are_divided_alike() -> None:
    members = {"b": spec(*TOPICS[:2]), "a": spec(*TOPICS[:2])}
    assert RANGE.assign(members, dict.fromkeys(TOPICS, 3)) == {
        "a": {topic: frozenset({0, 1}) for topic in TOPICS[:2]},
        "b": {topic: frozenset({2}) for topic in TOPICS[:2]},
    }


def test_static_members_come_first_and_by_their_instance() -> None:
    members = {
        "a": spec(TOPICS[0]),
        "y": spec(TOPICS[0], instance_id="2"),
        "z": spec(TOPICS[0], instance_id="1"),
    }
    assigned = RANGE.assign(members, {TOPICS[0]: 3})
    assert [next(iter(assigned[name][TOPICS[0]])) for name in ("z", "y", "a")] == [0, 1, 2]
