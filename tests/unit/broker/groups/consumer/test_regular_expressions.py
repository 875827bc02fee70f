"""Topics by regular expression (KIP-848): evaluated by the coordinator aside, in RE2's syntax."""

from __future__ import annotations

import pytest
from consumer_puppet import Consumer, ConsumerPuppet

from penstock.broker.groups.consumer.expression_resolver import MIN_REFRESH_INTERVAL_MS
from penstock.broker.groups.consumer.regular_expressions import LENGTH_MAX, check_expression, topics_matching
from penstock.protocol.errors import ErrorCode, KafkaError

TOPICS = {"orders-1": 1, "orders-2": 1, "payments": 1}
REFRESH_INTERVAL_MS = 600_000


@pytest.fixture
def puppet() -> ConsumerPuppet:
    return ConsumerPuppet(TOPICS)


def matcher(puppet: ConsumerPuppet, name: str, expression: str) -> Consumer:
    return Consumer(puppet, name, topics=None, expression=expression)


def topics_of(member: Consumer) -> set[str]:
    return set(member.owned)


def test_an_expression_matches_whole_names() -> None:
    names = ["a", "ab", "ba", "a.b"]
    assert topics_matching(["a.?", "a", "[", "a\\.b"], names) == {
        "a.?": ("a", "ab"),
        "a": ("a",),
        "[": (),
        "a\\.b": ("a.b",),
    }


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("(", "missing ): ("),
        ("a**", "bad repetition operator: **"),
        ("(?=a)", "invalid perl operator: (?="),
        ("\\pL{900}", "pattern too large - compile failed"),
        ("a" * (LENGTH_MAX + 1), "it is too long"),
    ],
    ids=["open", "repeated", "lookahead", "too much", "too long"],
)
def test_an_expression_that_re2_does_not_read_is_refused(expression: str, reason: str) -> None:
    with pytest.raises(KafkaError) as caught:
        check_expression(expression)
    assert caught.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert caught.value.message == f"SubscribedTopicRegex `{expression}` is not a valid regular expression: {reason}."


def test_a_member_with_a_bad_expression_does_not_join(puppet: ConsumerPuppet) -> None:
    with pytest.raises(KafkaError) as caught:
        matcher(puppet, "one", "orders-(")
    assert caught.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert not list(puppet.shard.groups.consumer_groups)


def test_what_matches_is_assigned_when_it_is_known(puppet: ConsumerPuppet) -> None:
    one = matcher(puppet, "one", "orders-.*")
    assert one.owned == {}
    puppet.resolve()
    one.beat()
    assert topics_of(one) == {"orders-1", "orders-2"}
    assert puppet.group.is_subscribed("orders-1")
    assert not puppet.group.is_subscribed("payments")


def test_matching_that_fails_is_tried_again_with_the_next_heartbeat(puppet: ConsumerPuppet) -> None:
    one = matcher(puppet, "one", "orders-.*")
    puppet.is_aside_failing = True
    puppet.resolve()
    assert puppet.group.resolved == {}
    puppet.is_aside_failing = False
    one.beat()
    puppet.resolve()
    one.beat()
    assert topics_of(one) == {"orders-1", "orders-2"}


def test_an_expression_that_another_member_has_is_known_at_once(puppet: ConsumerPuppet) -> None:
    one = matcher(puppet, "one", "orders-.*")
    puppet.resolve()
    one.beat()
    two = matcher(puppet, "two", "orders-.*")
    puppet.settle(one, two)
    assert not puppet.aside
    assert len(one.partitions) == len(two.partitions) == 1


def test_names_and_an_expression_add_up(puppet: ConsumerPuppet) -> None:
    one = Consumer(puppet, "one", topics=["payments"], expression="orders-1")
    assert topics_of(one) == {"payments"}
    puppet.resolve()
    one.beat()
    assert topics_of(one) == {"payments", "orders-1"}


def test_a_topic_that_comes_is_found_after_a_while(puppet: ConsumerPuppet) -> None:
    one = matcher(puppet, "one", "orders-.*")
    puppet.resolve()
    one.beat()
    puppet.change_topics({**TOPICS, "orders-3": 1}, are_some_new=True)
    one.beat()
    assert not puppet.aside, "not again so soon"
    puppet.timers.wait(MIN_REFRESH_INTERVAL_MS)
    one.beat()
    puppet.resolve()
    one.beat()
    assert topics_of(one) == {"orders-1", "orders-2", "orders-3"}


def test_a_clock_that_was_ahead_holds_up_no_expression(puppet: ConsumerPuppet) -> None:
    puppet.clock_ahead_ms = 3_600_000
    matcher(puppet, "one", "orders-.*")
    puppet.resolve()
    successor = puppet.successor()
    two = matcher(successor, "two", "payments")
    successor.resolve()
    two.beat()
    assert topics_of(two) == {"payments"}
    two.beat()
    assert not successor.aside, "not again so soon"


def test_a_topic_that_is_deleted_is_given_up(puppet: ConsumerPuppet) -> None:
    one = matcher(puppet, "one", "orders-.*")
    puppet.resolve()
    one.beat()
    puppet.change_topics({"orders-1": 1})
    one.beat()
    assert topics_of(one) == {"orders-1"}


def test_expressions_are_resolved_anew_at_an_interval(puppet: ConsumerPuppet) -> None:
    one = matcher(puppet, "one", "orders-.*")
    puppet.resolve()
    one.beat()
    for _ in range(REFRESH_INTERVAL_MS // 30_000):
        puppet.timers.wait(30_000)
        one.beat()
        assert not puppet.aside
    puppet.timers.wait(1)
    one.beat()
    assert len(puppet.aside) == 1
    epoch = puppet.group.epoch
    puppet.resolve()
    assert puppet.group.epoch == epoch, "nothing has changed"


def test_an_expression_without_members_is_forgotten(puppet: ConsumerPuppet) -> None:
    one = matcher(puppet, "one", "orders-.*")
    puppet.resolve()
    one.beat()
    one.beat(expression="", topics=["payments"])
    assert puppet.group.resolved == {}
    assert puppet.group.topic_counts == {"payments": 1}
    puppet.settle(one)
    assert topics_of(one) == {"payments"}
    assert puppet.successor().group.resolved == {}


def test_an_expression_goes_with_its_last_member(puppet: ConsumerPuppet) -> None:
    one, two = matcher(puppet, "one", "orders-.*"), matcher(puppet, "two", "orders-.*")
    puppet.resolve()
    one.leave()
    assert list(puppet.group.resolved) == ["orders-.*"]
    two.leave()
    assert puppet.group.resolved == {}
    assert not puppet.group.topic_counts


def test_a_result_for_a_group_that_is_gone_is_dropped(puppet: ConsumerPuppet) -> None:
    one = matcher(puppet, "one", "orders-.*")
    one.leave()
    puppet.shard.offsets.delete_groups([puppet.group.id])
    count = len(puppet.log.records)
    puppet.resolve()
    assert len(puppet.log.records) == count


def test_a_resolution_without_members_ends_early() -> None:
    wanted = iter([True, False, False])
    assert topics_matching(["."], ["a", "b", "c"], lambda: next(wanted)) == {".": ("a",)}


def test_a_coordinator_that_is_gone_matches_nothing_more(puppet: ConsumerPuppet) -> None:
    matcher(puppet, "one", "orders-.*")
    puppet.unload()
    puppet.resolve()
    assert puppet.group.resolved == {}


def test_a_successor_knows_what_expressions_stand_for(puppet: ConsumerPuppet) -> None:
    one = matcher(puppet, "one", "orders-.*")
    puppet.resolve()
    one.beat()
    successor = puppet.successor()
    assert successor.group.resolved == puppet.group.resolved
    assert successor.group.topic_counts == puppet.group.topic_counts
    one.puppet = successor
    one.beat()
    assert topics_of(one) == {"orders-1", "orders-2"}


def test_a_hostile_expression_takes_no_longer_than_its_length_allows() -> None:
    """What takes exponential time in engines that try one way after another: without an end, it would not return."""
    hostile = ["(a+)+$b", "(a|aa)+c", "(.*a){20}x", "(?:a?){500}a{500}b"]
    assert topics_matching(hostile, ["a" * 249] * 10) == dict.fromkeys(hostile, ())
