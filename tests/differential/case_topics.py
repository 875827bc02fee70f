"""CreateTopics, CreatePartitions and DeleteTopics: what is made and removed, and everything that is refused."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from differential.script import TIMEOUT_MS, Run, case

from penstock.protocol.apis import ApiKey

NO_ID = UUID(int=0)
UNKNOWN_ID = UUID(int=12345)


def topic(name: str, partitions: int = 1, replication: int = 1, **rest: Any) -> dict[str, Any]:
    return {"name": name, "num_partitions": partitions, "replication_factor": replication, **rest}


def assigned(name: str, *replicas: list[int], first: int = 0) -> dict[str, Any]:
    given = [{"partition_index": first + index, "broker_ids": brokers} for index, brokers in enumerate(replicas)]
    return topic(name, -1, -1, assignments=given)


def configured(name: str, **configs: str | None) -> dict[str, Any]:
    given = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
    return topic(name, configs=given)


def create(
    run: Run, step: str, *topics: dict[str, Any], validate_only: bool = False, timeout: int = TIMEOUT_MS
) -> None:
    run.ask(step, topics=list(topics), timeout=timeout, validate_only=validate_only)


@case(ApiKey.CREATE_TOPICS)
def create_topics(run: Run) -> None:
    create(run, "one", topic(run.name("one"), 3))
    run.settle(run.name("one"), 3)
    create(run, "two at once", topic(run.name("a"), 1), topic(run.name("b"), 2))
    run.settle(run.name("a"))
    run.settle(run.name("b"), 2)
    if run.version >= 4:
        create(run, "defaults of partitions and replicas", topic(run.name("defaults"), -1, -1))
        run.settle(run.name("defaults"))
    create(run, "assigned", assigned(run.name("assigned"), [1], [1]))
    run.settle(run.name("assigned"), 2)
    create(run, "validated only", topic(run.name("checked")), validate_only=True)
    create(run, "validated only, assigned", assigned(run.name("checked"), [1]), validate_only=True)
    configs = {"retention_ms": "1000", "cleanup_policy": "compact", "segment_bytes": None}
    create(run, "with configs", configured(run.name("configs"), **{k: v for k, v in configs.items() if v}))
    run.settle(run.name("configs"))
    create(run, "a config of each type", configured(run.name("types"), **VALID_CONFIGS))
    run.settle(run.name("types"))
    create(run, "nothing")
    for timeout in (0, -1):
        create(run, f"within {timeout} ms", topic(run.name("hurry"), 0), timeout=timeout)


VALID_CONFIGS = {
    "cleanup_policy": "compact,delete",
    "compression_type": "zstd",
    "compression_zstd_level": "5",
    "delete_retention_ms": "1000",
    "file_delete_delay_ms": "100",
    "flush_messages": "10",
    "flush_ms": "10000",
    "follower_replication_throttled_replicas": "0:1",
    "index_interval_bytes": "100",
    "leader_replication_throttled_replicas": "*",
    "max_compaction_lag_ms": "100000",
    "max_message_bytes": "100000",
    "message_timestamp_after_max_ms": "1000000",
    "message_timestamp_type": "LogAppendTime",
    "min_cleanable_dirty_ratio": "0.3",
    "min_insync_replicas": "1",
    "preallocate": "true",
    "retention_bytes": "1000000",
    "segment_bytes": "1048576",
    "segment_jitter_ms": "10",
    "unclean_leader_election_enable": "true",
}

INVALID_NAMES = ("", ".", "..", "with blank", "slash/", "ümlaut", "x" * 249, "x" * 250, "colon:", "a\nb")


@case(ApiKey.CREATE_TOPICS)
def create_topics_refused(run: Run) -> None:
    taken = run.create("taken")
    create(run, "exists", topic(taken))
    create(run, "exists, validated", topic(taken), validate_only=True)
    create(run, "exists, with other errors", topic(taken, 0, 7))
    for place, name in enumerate(INVALID_NAMES):
        if len(name) != 249:
            create(run, f"name {place}", topic(name))
    create(run, "name that collides", topic(taken.replace(".", "_")))
    for partitions in (0, -1, -2, 2**31 - 1, 10_001):
        create(run, f"{partitions} partitions", topic(run.name("p"), partitions, 1), validate_only=True)
    for replication in (0, -1, -2, 2, 32767):
        create(run, f"{replication} replicas", topic(run.name("r"), 1, replication), validate_only=True)
    create(run, "both wrong", topic(run.name("both"), 0, 0))
    create(run, "twice", topic(run.name("twice")), topic(run.name("twice")), topic(run.name("other")))
    run.settle(run.name("other"))
    create(
        run, "twice, differently", topic(run.name("twice")), topic(run.name("twice"), 2), topic(run.name("third"), 0)
    )
    create(run, "internal", topic("__share_group_state"), validate_only=True)
    create(run, "cluster metadata", topic("__cluster_metadata"), validate_only=True)


@case(ApiKey.CREATE_TOPICS)
def create_topics_assigned(run: Run) -> None:
    name = run.name()
    create(run, "unknown broker", assigned(name, [7]))
    create(run, "negative broker", assigned(name, [-1]))
    create(run, "broker twice", assigned(name, [1, 1]))
    create(run, "unlike counts", assigned(name, [1], [1, 2]))
    create(run, "no brokers", assigned(name, []))
    create(run, "does not start at 0", assigned(name, [1], first=1))
    create(run, "negative index", assigned(name, [1], first=-1))
    gap = assigned(name, [1], [1])
    gap["assignments"][1]["partition_index"] = 5
    create(run, "gap", gap)
    double = assigned(name, [1], [1])
    double["assignments"][1]["partition_index"] = 0
    create(run, "index twice", double)
    create(run, "with a number of partitions", {**assigned(name, [1]), "num_partitions": 1})
    create(run, "with a replication factor", {**assigned(name, [1]), "replication_factor": 1})
    create(run, "with both", {**assigned(name, [1]), "num_partitions": 1, "replication_factor": 1})


INVALID_CONFIGS: tuple[dict[str, str | None], ...] = (
    {"no_such_key": "1"},
    {"": "1"},
    {"retention_ms": "abc"},
    {"retention_ms": ""},
    {"retention_ms": None},
    {"retention_ms": "-2"},
    {"retention_ms": "99999999999999999999"},
    {"retention_bytes": "1.5"},
    {"segment_bytes": "13"},
    {"segment_bytes": "3000000000"},
    {"segment_ms": "0"},
    {"cleanup_policy": "shred"},
    {"cleanup_policy": "delete,shred"},
    {"cleanup_policy": ""},
    {"compression_type": "brotli"},
    {"compression_gzip_level": "10"},
    {"compression_zstd_level": "99"},
    {"compression_lz4_level": "0"},
    {"message_timestamp_type": "Never"},
    {"message_timestamp_before_max_ms": "-1"},
    {"min_cleanable_dirty_ratio": "1.1"},
    {"min_cleanable_dirty_ratio": "x"},
    {"min_insync_replicas": "0"},
    {"preallocate": "yes"},
    {"unclean_leader_election_enable": "2"},
    {"max_message_bytes": "-1"},
    {"min_compaction_lag_ms": "100", "max_compaction_lag_ms": "10"},
    {"leader_replication_throttled_replicas": "x"},
    {"leader_replication_throttled_replicas": "1:2:3"},
    {"remote_storage_enable": "true"},
    {"remote_storage_enable": "false"},
    {"local_retention_ms": "-3"},
    {"local_retention_ms": "99999999999"},
    {"local_retention_bytes": "5", "retention_bytes": "4"},
    {"index_interval_bytes": "-1"},
    {"segment_index_bytes": "3"},
    {"flush_messages": "0"},
    {"flush_ms": "-1"},
    {"internal_segment_bytes": "100000"},
    {"message_format_version": "3.0"},
    {"message_downconversion_enable": "true"},
    {"retention_ms": "1", "no_such_key": "1"},
    {"errors_log_enable": "true"},
    {"delete_retention_ms": "-1"},
    {"file_delete_delay_ms": "-1"},
    {"max_compaction_lag_ms": "0"},
    {"segment_jitter_ms": "-1"},
    {"remote_log_copy_disable": "true"},
    {"remote_log_delete_on_disable": "true"},
)


@case(ApiKey.CREATE_TOPICS)
def create_topics_configs(run: Run) -> None:
    for place, configs in enumerate(INVALID_CONFIGS):
        create(run, f"{place} {configs}", configured(run.name("c"), **configs), validate_only=True)
    twice = topic(
        run.name("c"), configs=[{"name": "retention.ms", "value": "1"}, {"name": "retention.ms", "value": "2"}]
    )
    create(run, "key twice", twice, validate_only=True)


@case(ApiKey.CREATE_PARTITIONS)
def create_partitions(run: Run) -> None:
    name = run.create("grows", 2)

    def grow(step: str, *topics: dict[str, Any], validate_only: bool = False) -> None:
        run.ask(step, topics=list(topics), timeout=TIMEOUT_MS, validate_only=validate_only)

    grow("validated", {"name": name, "count": 3, "assignments": None}, validate_only=True)
    grow("one more", {"name": name, "count": 3, "assignments": None})
    run.settle(name, 3)
    grow("assigned", {"name": name, "count": 4, "assignments": [{"broker_ids": [1]}]})
    run.settle(name, 4)
    for count in (4, 3, 1, 0, -1, 10_001, 2**31 - 1):
        grow(f"to {count}", {"name": name, "count": count, "assignments": None}, validate_only=True)
    grow("unknown topic", {"name": run.name("unknown"), "count": 3, "assignments": None})
    grow("empty name", {"name": "", "count": 3, "assignments": None})
    grow("too few assignments", {"name": name, "count": 6, "assignments": [{"broker_ids": [1]}]})
    grow("too many assignments", {"name": name, "count": 5, "assignments": [{"broker_ids": [1]}] * 2})
    grow("no assignments", {"name": name, "count": 5, "assignments": []})
    grow("unknown broker", {"name": name, "count": 5, "assignments": [{"broker_ids": [9]}]})
    grow("broker twice", {"name": name, "count": 5, "assignments": [{"broker_ids": [1, 1]}]})
    grow("no broker", {"name": name, "count": 5, "assignments": [{"broker_ids": []}]})
    grow("negative broker", {"name": name, "count": 5, "assignments": [{"broker_ids": [-1]}]})
    both = {"name": name, "count": 5, "assignments": None}
    grow("twice", both, both, {"name": run.name("unknown"), "count": 3, "assignments": None})
    grow("internal", {"name": "__cluster_metadata", "count": 3, "assignments": None})
    grow("nothing")
    for timeout in (0, -1):
        late = {"name": name, "count": 0, "assignments": None}
        run.ask(f"within {timeout} ms", topics=[late], timeout=timeout, validate_only=False)


@case(ApiKey.DELETE_TOPICS)
def delete_topics(run: Run) -> None:
    first, second, third = run.create("first"), run.create("second"), run.create("third")

    def delete(step: str, *topics: str, timeout: int = TIMEOUT_MS) -> None:
        states = [{"name": name, "topic_id": None} for name in topics]
        run.ask(step, topics=states, topic_names=list(topics), timeout=timeout)

    delete("one", first)
    run.wait_gone(first)
    delete("again", first)
    delete("two, one of them unknown", second, run.name("unknown"))
    delete("empty name", "")
    delete("invalid name", "a b")
    delete("twice", third, third)
    delete("nothing")
    delete("within 0 ms", run.name("unknown"), timeout=0)
    delete("within -1 ms", run.name("unknown"), timeout=-1)
    if run.version >= 6:
        by_id = run.create("by-id")
        name_and_id = run.create("both")
        run.ask("by id", topics=[{"name": None, "topic_id": run.ids[by_id]}], timeout=TIMEOUT_MS)
        run.wait_gone(by_id)
        run.ask("by id again", topics=[{"name": None, "topic_id": run.ids[by_id]}], timeout=TIMEOUT_MS)
        run.ask("unknown id", topics=[{"name": None, "topic_id": UNKNOWN_ID}], timeout=TIMEOUT_MS)
        run.ask("neither", topics=[{"name": None, "topic_id": NO_ID}], timeout=TIMEOUT_MS)
        both = {"name": name_and_id, "topic_id": run.ids[name_and_id]}
        run.ask("name and id", topics=[both], timeout=TIMEOUT_MS)
        once_each = [{"name": name_and_id, "topic_id": None}, {"name": None, "topic_id": run.ids[name_and_id]}]
        run.ask("by name and by id", topics=once_each, timeout=TIMEOUT_MS)
        same_id = {"name": None, "topic_id": run.ids[name_and_id]}
        run.ask("same id twice", topics=[same_id, same_id], timeout=TIMEOUT_MS)


@case(ApiKey.ELECT_LEADERS)
def elect_leaders(run: Run) -> None:
    name = run.create("t", 2)
    for kind in (0, 1):

        def elect(step: str, topic: str, *partitions: int, kind: int = kind) -> None:
            wanted = [{"topic": topic, "partitions": list(partitions)}]
            run.ask(f"{step}, {kind}", election_type=kind, topic_partitions=wanted, timeout=TIMEOUT_MS)

        elect("both partitions", name, 0, 1)
        elect("unknown partition", name, 0, 7)
        elect("unknown topic", run.name("unknown"), 0)
        elect("no partitions", name)
        run.ask(f"nothing, {kind}", election_type=kind, topic_partitions=[], timeout=TIMEOUT_MS)


@case(ApiKey.LIST_PARTITION_REASSIGNMENTS)
def list_partition_reassignments(run: Run) -> None:
    name = run.create("t", 2)

    def ask(step: str, topic: str, *partitions: int) -> None:
        run.ask(step, topics=[{"name": topic, "partition_indexes": list(partitions)}], timeout=TIMEOUT_MS)

    ask("both partitions", name, 0, 1)
    ask("unknown partition", name, 7)
    ask("unknown topic", run.name("unknown"), 0)
    ask("no partitions", name)
    run.ask("nothing", topics=[], timeout=TIMEOUT_MS)
    run.ask("everything", topics=None, timeout=TIMEOUT_MS)


@case(ApiKey.ALTER_PARTITION_REASSIGNMENTS)
def alter_partition_reassignments(run: Run) -> None:
    name = run.create("t", 2)

    def move(step: str, topic: str, *targets: tuple[int, list[int] | None], **rest: Any) -> None:
        partitions = [{"partition_index": index, "replicas": replicas} for index, replicas in targets]
        run.ask(step, topics=[{"name": topic, "partitions": partitions}], timeout=TIMEOUT_MS, **rest)

    move("to where it is", name, (0, [1]))
    move("cancelled", name, (0, None), (1, None))
    move("to nobody", name, (0, []))
    move("to an unknown broker", name, (0, [1, 77]))
    move("to an unknown broker alone", name, (0, [77]))
    move("twice to one broker", name, (0, [1, 1]))
    move("unknown partition", name, (7, [1]), (-1, None))
    move("unknown topic", run.name("unknown"), (0, [1]), (0, None))
    move("no partitions", name)
    move("one named twice", name, (0, [1]), (0, None))
    run.ask("nothing", topics=[], timeout=TIMEOUT_MS)
    if run.version >= 1:
        move("as many replicas", name, (0, [1]), allow_replication_factor_change=False)
        move("fewer replicas", name, (0, []), allow_replication_factor_change=False)
