"""Groups and their offsets, as far as answers do not depend on ids that a broker draws or on when members come."""

from __future__ import annotations

from typing import Any

from differential.script import Run, case

from penstock.protocol.apis import ApiKey

NOT_YET = (14, 15, 16)
"""The coordinator is being loaded, made, or elsewhere."""
NOBODY: dict[str, Any] = {"generation_id_or_member_epoch": -1, "member_id": ""}


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
    run.quiet(ApiKey.OFFSET_COMMIT, 9, group_id=name, topics=[offsets(run, topic, (0, 5, "m"), (1, 7, None))], **NOBODY)
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
    nobody = [{"member_id": "nobody", "group_instance_id": None}, {"member_id": "", "group_instance_id": "static"}]
    run.ask("unknown member", group_id=name, member_id="nobody", members=nobody)
    run.ask("unknown group", group_id=group(run, "other"), member_id="nobody", members=nobody)
    run.ask("no group", group_id="", member_id="nobody", members=nobody)


@case(ApiKey.OFFSET_COMMIT)
def offset_commit(run: Run) -> None:
    name, topic = group(run), run.create("t", 2)

    def ask(step: str, *topics: dict[str, Any], of: str = name, **who: Any) -> None:
        run.ask(step, group_id=of, topics=list(topics), **{**NOBODY, **who})

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
