"""Names in the sink of what one partition of a source is copied to."""

from __future__ import annotations

from penstock.pipeline.mirroring.rules.source_partition import SourcePartition


def test_no_two_partitions_have_one_transactional_id() -> None:
    """They would fence each other for ever."""
    ids = [
        SourcePartition(cluster=cluster, topic=topic, partition=partition).transactional_id("penstock-mirror.all")
        for cluster, topic in (("a", "b.c"), ("a.b", "c"), ("a%2Eb", "c"), ("a", "b"))
        for partition in (0, 1)
    ]
    assert len({*ids}) == len(ids)


def test_a_name_without_dots_is_in_it_as_it_is() -> None:
    """ACLs of transactional ids are written by hand."""
    place = SourcePartition(cluster="east", topic="web.orders", partition=2)
    assert place.transactional_id("penstock-mirror.mirror") == "penstock-mirror.mirror.east.web.orders.2"
