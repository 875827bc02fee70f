"""The sink gets the topics of the source, and what does not fit is refused with a way out."""

from __future__ import annotations

import pytest

from penstock.pipeline.mirroring.errors import MirrorError
from penstock.pipeline.mirroring.rules.topic_steps import (
    AddPartitions,
    CreateTopic,
    SinkTopic,
    SourceTopic,
    copied_configs,
    is_copied,
    target_name,
    topic_steps,
)


def source(partition_count: int, cluster: str = "east", target: str = "orders") -> SourceTopic:
    return SourceTopic(
        cluster=cluster, name="orders", topic_id="source", partition_count=partition_count, target=target
    )


def sinks(partition_count: int) -> dict[str, SinkTopic]:
    return {"orders": SinkTopic(name="orders", topic_id="target", partition_count=partition_count)}


def test_a_missing_topic_is_made_with_the_partitions_of_the_source() -> None:
    steps = topic_steps([source(3)], {}, set())
    assert steps.create == [CreateTopic(name="orders", partition_count=3, like=source(3))]
    assert steps.extend == []


def test_of_several_sources_the_largest_counts() -> None:
    steps = topic_steps([source(3), source(5, "west"), source(2, "north")], {}, set())
    assert steps.create == [CreateTopic(name="orders", partition_count=5, like=source(5, "west"))]


def test_a_topic_with_as_many_or_more_is_taken_as_it_is() -> None:
    for count in (3, 4):
        steps = topic_steps([source(3)], sinks(count), set())
        assert (steps.create, steps.extend) == ([], [])


def test_a_topic_with_fewer_is_refused() -> None:
    with pytest.raises(MirrorError, match=r"orders of the sink has 2 partitions, and orders of east has 3"):
        topic_steps([source(3)], sinks(2), set())


def test_it_grows_when_the_source_has_grown_since() -> None:
    assert topic_steps([source(3)], sinks(2), {"orders"}).extend == [AddPartitions(name="orders", partition_count=3)]


def test_a_topic_that_was_deleted_is_not_made_again() -> None:
    with pytest.raises(MirrorError, match=r"was deleted, and records were copied to it before"):
        topic_steps([source(3)], {}, {"orders"})


def test_repartitioned_records_need_no_partition_of_the_source() -> None:
    steps = topic_steps([source(3)], sinks(2), set(), 0)
    assert (steps.create, steps.extend) == ([], [])
    assert topic_steps([source(3)], {}, set(), 8).create[0].partition_count == 8
    assert topic_steps([source(3)], {}, set(), 0).create[0].partition_count == 3


def test_names_follow_the_format() -> None:
    assert target_name("{cluster}.{topic}", "east", "orders") == "east.orders"
    with pytest.raises(MirrorError, match=r"has no \{topic\}"):
        target_name("{cluster}", "east", "orders")


def test_internal_topics_are_copied_only_when_they_are_named() -> None:
    assert is_copied("orders", [], "ord.*")
    assert not is_copied("borders", [], "ord.*")
    assert not is_copied("__consumer_offsets", [], ".*")
    assert not is_copied("penstock-mirror-offsets.m", [], ".*")
    assert is_copied("__consumer_offsets", ["__consumer_offsets"], "")


def test_configs_that_belong_to_a_cluster_are_not_copied() -> None:
    configs = {"retention.ms": "5", "min.insync.replicas": "2", "message.timestamp.type": "LogAppendTime"}
    assert copied_configs(configs) == {"retention.ms": "5"}
