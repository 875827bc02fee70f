"""Events as lines."""

from __future__ import annotations

import json
from typing import get_args
from uuid import UUID

from penstock.broker.admin.v1.events import event_text
from penstock.client.operating.event_lines import _SENTENCES, event_line, event_sentence, read_events
from penstock.protocol.ids import LeaderEpoch, NodeId, TopicId
from penstock.quorum.metadata.cluster_events import (
    ClusterChange,
    ClusterEvent,
    ConfigChange,
    ConfigsChanged,
    Gap,
    IsrShrunk,
    LeaderChanged,
    QuorumLeaderChanged,
    Summary,
    TopicCreated,
)
from penstock.quorum.metadata.event_id import EventId


def sentence(change: ClusterChange) -> str:
    text = event_text(ClusterEvent(id=EventId(7, 2), timestamp_ms=99, change=change))
    (event,) = read_events(text.splitlines(keepends=True))
    return event_sentence(event)


def test_every_kind_of_event_has_a_sentence() -> None:
    assert {change.KIND for change in get_args(ClusterChange)} == _SENTENCES.keys()


def test_sentences_say_what_was_and_what_is() -> None:
    place = {"topic": "t", "partition": 3}
    changed = LeaderChanged(
        topic="t", partition=3, old_leader=NodeId(1), new_leader=NodeId(-1), leader_epoch=LeaderEpoch(5)
    )
    assert sentence(changed) == "t-3: leader 1 → none (leader epoch 5)"
    assert sentence(IsrShrunk(**place, removed=(NodeId(2),), isr=(NodeId(1), NodeId(3)))) == (  # type: ignore[arg-type]
        "t-3: 2 left the ISR, now 1,3"
    )
    created = TopicCreated(topic="t", topic_id=TopicId(UUID(int=1)), partition_count=1, replication_factor=3)
    assert sentence(created) == "topic t created with 1 partition of 3 replicas"
    assert sentence(Summary(of="leader-changed", count=1_500, brokers={NodeId(2): 1_500})) == (
        "1,500 × leader-changed (broker 2: 1,500)"
    )
    assert sentence(QuorumLeaderChanged(epoch=4, leader_id=None)).endswith("epoch 4: its leader is not known yet")  # type: ignore[arg-type]
    assert "not remembered" in sentence(Gap())


def test_configs_hide_passwords_and_say_where_there_are_more() -> None:
    changes = (ConfigChange("a", "1"), ConfigChange("b", None), ConfigChange("c", None, is_hidden=True))
    assert sentence(ConfigsChanged(resource_type=2, resource_name="t", count=9, changes=changes)) == (
        "configs of topic t changed: a=1, b=unset, c=hidden, …"
    )


def test_comments_and_unknown_kinds_are_no_failure() -> None:
    lines = [b"retry: 2000\n", b"\n", b": heartbeat\n", b'data: {"id":"1.0","kind":"new","timestamp_ms":0,"x":1}\n']
    (event,) = read_events(lines)
    assert event_line(event) == f"1970-01-01T00:00:00.000Z       1.0  new {json.dumps({'x': 1})}"
