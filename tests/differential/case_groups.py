"""Groups and their offsets, as far as answers do not depend on ids that a broker draws or on when members come."""

from __future__ import annotations

from struct import pack
from typing import Any
from uuid import UUID

from differential.script import Run, case

from penstock.protocol.apis import ApiKey

NOT_YET = (14, 15, 16)
"""The coordinator is being loaded, made, or elsewhere."""
UNKNOWN_ID = UUID(int=7)
SLOWEST_INTERVAL_MS = "15000"
GROUP_CONFIG, SET = 32, 0
NO_MEMBER: dict[str, Any] = {"generation_id_or_member_epoch": -1, "member_id": ""}


def group(run: Run, word: str = "g") -> str:
    """The name of a group of this run, whose coordinator is there."""
    name = run.name(word)

    def is_found() -> bool:
        found = run.quiet(ApiKey.FIND_COORDINATOR, key_type=0, coordinator_keys=[name])
        return bool(found["coordinators"][0]["error_code"] == 0)

    def is_loaded() -> bool:
        return run.quiet(ApiKey.DESCRIBE_GROUPS, 5, groups=[name])["groups"][0]["error_code"] not in NOT_YET

    run.wait_for(is_found)
    run.wait_for(is_loaded)
    return name


def offsets(run: Run, topic: str, *partitions: tuple[int, int, str | None]) -> dict[str, Any]:
    return {
        "name": topic,
        "topic_id": run.ids.get(topic),
        "partitions": [
            {"partition_index": index, "committed_offset": offset, "committed_metadata": metadata}
            for index, offset, metadata in partitions
        ],
    }


def committed(run: Run) -> tuple[str, str]:
    """A group that has committed offsets of a topic, and the topic."""
    name, topic = group(run), run.create("t", 2)
    run.quiet(
        ApiKey.OFFSET_COMMIT, 9, group_id=name, topics=[offsets(run, topic, (0, 5, "m"), (1, 7, None))], **NO_MEMBER
    )
    return name, topic


@case(ApiKey.JOIN_GROUP)
def join_group(run: Run) -> None:
    name = group(run)

    def ask(step: str, **values: Any) -> None:
        said = {
            "group_id": name,
            "session_timeout": 10_000,
            "rebalance_timeout": 10_000,
            "member_id": "",
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": b""}],
        }
        run.ask(step, **{**said, **values})

    ask("unknown member", member_id="nobody")
    ask("no group", group_id="")
    ask("short session", session_timeout=10)
    ask("long session", session_timeout=2**31 - 1)
    ask("no protocols", protocols=[])
    ask("no protocol type", protocol_type="")


@case(ApiKey.SYNC_GROUP)
def sync_group(run: Run) -> None:
    name = group(run)
    said: dict[str, Any] = {"generation_id": 1, "member_id": "nobody", "protocol_type": "consumer"}
    run.ask("unknown group", group_id=name, protocol_name="range", assignments=[], **said)
    run.ask("no group", group_id="", protocol_name="range", assignments=[], **said)
    run.ask("no protocol", group_id=name, protocol_name=None, assignments=[], **said)


@case(ApiKey.HEARTBEAT)
def heartbeat(run: Run) -> None:
    name = group(run)
    run.ask("unknown group", group_id=name, generation_id=1, member_id="nobody")
    run.ask("no group", group_id="", generation_id=1, member_id="nobody")
    empty, _ = committed(run)
    run.ask("empty group", group_id=empty, generation_id=0, member_id="nobody")


@case(ApiKey.LEAVE_GROUP)
def leave_group(run: Run) -> None:
    name, _ = committed(run)
    unknown = [{"member_id": "nobody", "group_instance_id": None}, {"member_id": "", "group_instance_id": "static"}]
    run.ask("unknown member", group_id=name, member_id="nobody", members=unknown)
    run.ask("unknown group", group_id=group(run, "other"), member_id="nobody", members=unknown)
    run.ask("no group", group_id="", member_id="nobody", members=unknown)


@case(ApiKey.OFFSET_COMMIT)
def offset_commit(run: Run) -> None:
    name, topic = group(run), run.create("t", 2)

    def ask(step: str, *topics: dict[str, Any], of: str = name, **who: Any) -> None:
        run.ask(step, group_id=of, topics=list(topics), **{**NO_MEMBER, **who})

    ask("nobody's", offsets(run, topic, (0, 5, "m"), (1, 7, None)))
    ask("unknown partition", offsets(run, topic, (0, 6, ""), (2, 6, ""), (-1, 6, "")))
    ask("large metadata", offsets(run, topic, (0, 6, "x" * 4_097), (1, 8, "x" * 4_096)))
    ask("negative offset", offsets(run, topic, (0, -1, "")))
    ask("no topics")
    ask("no partitions", offsets(run, topic))
    ask("unknown member", offsets(run, topic, (0, 6, "")), generation_id_or_member_epoch=1, member_id="nobody")
    other = group(run, "other")
    ask("unknown group", offsets(run, topic, (0, 6, "")), of=other, generation_id_or_member_epoch=1, member_id="nobody")
    ask("static", offsets(run, topic, (0, 6, "")), generation_id_or_member_epoch=0, group_instance_id="static")


@case(ApiKey.OFFSET_FETCH)
def offset_fetch(run: Run) -> None:
    name, topic = committed(run)

    def ask(step: str, *topics: dict[str, Any], of: str = name, is_all: bool = False) -> None:
        wanted = None if is_all else list(topics)
        groups = [{"group_id": of, "member_id": None, "member_epoch": -1, "topics": wanted}]
        # Version 1 has no null, those before 8 no ids.
        named = [{name: one[name] for name in ("name", "partition_indexes")} for one in topics]
        run.ask(step, group_id=of, topics=None if is_all and run.version > 1 else named, groups=groups)

    def of_topic(*indexes: int) -> dict[str, Any]:
        return {"name": topic, "topic_id": run.ids[topic], "partition_indexes": list(indexes)}

    ask("committed", of_topic(0, 1))
    ask("not committed", of_topic(1, 2, -1))
    ask("no topics")
    ask("all of another group", of=group(run, "other"), is_all=True)
    ask("another group", of_topic(0), of=group(run, "other"))
    unknown = {"name": run.name("unknown"), "topic_id": UNKNOWN_ID, "partition_indexes": [0, 1]}
    ask("an unknown topic first", unknown, of_topic(0))


@case(ApiKey.OFFSET_DELETE)
def offset_delete(run: Run) -> None:
    name, topic = committed(run)

    def ask(step: str, of: str, word: str, *indexes: int) -> None:
        topics = [{"name": word, "partitions": [{"partition_index": index} for index in indexes]}]
        run.ask(step, group_id=of, topics=topics)

    ask("one", name, topic, 0)
    ask("again, and what is not there", name, topic, 0, 5)
    ask("unknown topic", name, run.name("unknown"), 0)
    ask("unknown group", group(run, "other"), topic, 0)
    ask("no group", "", topic, 0)


@case(ApiKey.DELETE_GROUPS)
def delete_groups(run: Run) -> None:
    name, _ = committed(run)
    run.ask("one", groups_names=[name])
    run.ask("again", groups_names=[name])
    run.ask("none", groups_names=[])


@case(ApiKey.LIST_GROUPS)
def list_groups(run: Run) -> None:
    committed(run)
    run.ask("all", states_filter=[], types_filter=[], only_own=True)
    run.ask("empty ones", states_filter=["eMPTY"], types_filter=[], only_own=True)
    run.ask("stable ones", states_filter=["Stable"], types_filter=[], only_own=True)
    run.ask("classic ones", states_filter=[], types_filter=["CLASSIC"], only_own=True)


@case(ApiKey.DESCRIBE_GROUPS)
def describe_groups(run: Run) -> None:
    name, _ = committed(run)
    run.ask("one", groups=[name])
    run.ask("with operations", groups=[name], include_authorized_operations=True)
    run.ask("unknown", groups=[group(run, "other")])
    run.ask("none", groups=[])


@case(ApiKey.CONSUMER_GROUP_HEARTBEAT)
def consumer_group_heartbeat(run: Run) -> None:
    name = group(run)

    def ask(step: str, **values: Any) -> None:
        said: dict[str, Any] = {"group_id": name, "member_id": "member", "member_epoch": 1}
        run.ask(step, **{**said, **values})

    ask("unknown group")
    ask("no group", group_id="")
    ask("blank group", group_id=" ")
    ask("no member", member_id="")
    ask("no timeout", member_epoch=0, subscribed_topic_names=["t"], topic_partitions=[])
    ask("epoch below all", member_epoch=-3)
    ask("unknown assignor", member_epoch=0, rebalance_timeout=5_000, subscribed_topic_names=["t"],
        topic_partitions=[], server_assignor="other")  # fmt: skip


@case(ApiKey.CONSUMER_GROUP_DESCRIBE)
def consumer_group_describe(run: Run) -> None:
    name, _ = committed(run)
    run.ask("unknown", group_ids=[group(run, "other")])
    run.ask("a classic one", group_ids=[name])
    run.ask("none", group_ids=[])


# Members of the classic protocol in a consumer group. They choose their ids here, which a broker would draw otherwise.


def subscription(topic: str) -> bytes:
    """Of version 0."""
    return pack(">hih", 0, 1, len(topic)) + topic.encode() + pack(">i", -1)


def assignment(topic: str, user_data: bytes | None) -> bytes:
    """Of version 0, with partition 0."""
    data = pack(">i", -1) if user_data is None else pack(">i", len(user_data)) + user_data
    return pack(">hih", 0, 1, len(topic)) + topic.encode() + pack(">ii", 1, 0) + data


def consumer_group(run: Run, word: str = "g") -> tuple[str, str]:
    """A group whose target assignment was made just now, and is not made again while the case lasts; and its topic."""
    name, topic = group(run, word), run.create(f"{word}.t", 2)
    config = {"name": "consumer.assignment.interval.ms", "config_operation": SET, "value": SLOWEST_INTERVAL_MS}
    resource = {"resource_type": GROUP_CONFIG, "resource_name": name, "configs": [config]}
    (set_,) = run.quiet(ApiKey.INCREMENTAL_ALTER_CONFIGS, resources=[resource], validate_only=False)["responses"]
    assert set_["error_code"] == 0, set_
    beat(run, name, topic, "first")
    return name, topic


def beat(run: Run, name: str, topic: str, member: str, instance: str | None = None) -> None:
    """Joins with the consumer protocol."""
    answer = run.quiet(
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        group_id=name,
        member_id=member,
        member_epoch=0,
        instance_id=instance,
        rebalance_timeout=60_000,
        subscribed_topic_names=[topic],
        topic_partitions=[],
    )
    assert answer["error_code"] == 0, answer


def join(name: str, topic: str, member: str, **values: Any) -> dict[str, Any]:
    said = {
        "group_id": name,
        "session_timeout": 10_000,
        "rebalance_timeout": 60_000,
        "member_id": member,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": subscription(topic)}],
    }
    return {**said, **values}


@case(ApiKey.JOIN_GROUP)
def join_consumer_group(run: Run) -> None:
    name, topic = consumer_group(run)
    run.ask("a classic member", **join(name, topic, "classic"))
    run.ask("again", **join(name, topic, "classic"))
    run.ask("another protocol type", **join(name, topic, "said", protocol_type="connect"))
    unknown = [{"name": "other", "metadata": subscription(topic)}]
    run.ask("a protocol that others do not know", **join(name, topic, "said", protocols=unknown))
    run.ask("an unknown static member", **join(name, topic, "said", group_instance_id="unknown"))


@case(ApiKey.SYNC_GROUP)
def sync_consumer_group(run: Run) -> None:
    name, topic = consumer_group(run)
    joined = run.quiet(ApiKey.JOIN_GROUP, **join(name, topic, "classic"))

    def ask(step: str, **values: Any) -> None:
        said = {"group_id": name, "generation_id": joined["generation_id"], "member_id": "classic"}
        run.ask(step, protocol_type="consumer", protocol_name="range", assignments=[], **{**said, **values})

    ask("between two target assignments")
    ask("again")
    ask("another generation", generation_id=joined["generation_id"] + 1)
    ask("a member of the consumer protocol", member_id="first")


@case(ApiKey.HEARTBEAT)
def heartbeat_in_consumer_group(run: Run) -> None:
    name, topic = consumer_group(run)
    joined = run.quiet(ApiKey.JOIN_GROUP, **join(name, topic, "classic"))
    said = {"group_id": name, "generation_id": joined["generation_id"], "member_id": "classic"}
    run.ask("between two target assignments", **said)
    run.ask("a member of the consumer protocol", **{**said, "member_id": "first"})


@case(ApiKey.LEAVE_GROUP)
def leave_consumer_group(run: Run) -> None:
    name, topic = consumer_group(run)
    for member, instance in (("one", "i1"), ("two", "i2"), ("three", None), ("four", "i4")):
        beat(run, name, topic, member, instance)
    run.quiet(ApiKey.JOIN_GROUP, **join(name, topic, "classic"))

    def ask(step: str, *members: tuple[str, str | None]) -> None:
        identities = [{"member_id": member, "group_instance_id": instance} for member, instance in members]
        # Before version 3 there is one member, without an instance.
        run.ask(step, group_id=name, member_id=members[0][0], members=identities)

    ask("a dynamic member", ("three", None))
    ask("again", ("three", None))
    ask("a classic member", ("classic", None))
    if run.version >= 3:
        ask("static members", ("", "i1"), ("two", "i2"), ("four", None))
        ask("others", ("first", "i1"), ("", "i2"), ("", None))


@case(ApiKey.CONSUMER_GROUP_HEARTBEAT)
def upgrade(run: Run) -> None:
    for word, user_data in (("none", None), ("empty", b""), ("some", b"\0")):
        name, topic = group(run, word), run.create(f"{word}.t")
        told = run.quiet(ApiKey.JOIN_GROUP, **join(name, topic, ""))["member_id"]
        generation = run.quiet(ApiKey.JOIN_GROUP, **join(name, topic, told))["generation_id"]
        made = [{"member_id": told, "assignment": assignment(topic, user_data)}]
        run.quiet(
            ApiKey.SYNC_GROUP,
            group_id=name,
            generation_id=generation,
            member_id=told,
            protocol_type="consumer",
            protocol_name="range",
            assignments=made,
        )
        run.ask(f"assigned with user data: {word}", group_id=name, member_id="member", member_epoch=0,
                rebalance_timeout=60_000, subscribed_topic_names=[topic], topic_partitions=[])  # fmt: skip
