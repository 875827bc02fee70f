"""`penstock quorum status` (KIP-836) and `snapshots`: who agrees on the metadata, and what of it lies on disks."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import click
import msgspec
from kio.schema.describe_quorum.v2.request import DescribeQuorumRequest, PartitionData, TopicData
from kio.schema.describe_quorum.v2.response import DescribeQuorumResponse, ReplicaState
from kio.schema.describe_quorum.v2.response import PartitionData as QuorumState
from kio.schema.types import TopicName
from kio.static.primitive import i32

from ..protocol.errors import CorruptData, ErrorCode, KafkaError, error_info
from ..protocol.no_quorum import find_no_quorum
from .addresses import Address
from .bootstrap import Bootstrap, bootstrap_options
from .clock import now_ms
from .operating.admin_options import admin_options, json_option
from .terminal import print_json, print_table, say
from .units import format_age, format_bytes

if TYPE_CHECKING:
    from .admin import Admin

METADATA_TOPIC: Final = "__cluster_metadata"
_UNKNOWN: Final = -1
# For another address to name a leader, once one has said that it knows none.
_SECOND_OPINION_S: Final = 0.5


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@bootstrap_options
def status(bootstrap: Bootstrap, as_json: bool) -> None:
    """Show the leader, the voters, and the brokers that follow from outside, with how far each has come.

    Any live node answers. Without a leader it tells what it knows itself, and the exit status is 1.
    """
    bootstrap.check_reachable(needs_quorum=False)
    try:
        state = asyncio.run(_ask(bootstrap))
    except (KafkaError, CorruptData, OSError) as error:
        message = find_no_quorum(str(error).encode()) or str(error)
        raise click.ClickException(f"{message[:1].upper()}{message[1:].rstrip('.')}.") from error
    problem = _problem(state)
    if as_json:
        print_json(
            {
                "leader_id": _known(state.leader_id),
                "epoch": int(state.leader_epoch),
                "high_watermark": _known(state.high_watermark),
                "voters": [_described(replica, state) for replica in state.current_voters],
                "observers": [_described(replica, state) for replica in state.observers],
                "problem": problem,
            }
        )
    else:
        leader = "no leader" if state.leader_id == _UNKNOWN else f"leader {state.leader_id}"
        say(f"{leader}, epoch {state.leader_epoch}, high watermark {state.high_watermark}")
        _print_replicas(state)
    if problem is not None:
        raise click.ClickException(f"{problem}.")


@click.command()
@json_option
@admin_options
def snapshots(admin: Admin, as_json: bool) -> None:
    """List the snapshots of the metadata on the disks of the controllers, over HTTP."""
    found = admin.list_quorum_snapshots()
    if as_json:
        print_json(msgspec.to_builtins(found))
    elif found.snapshots:
        print_table(
            ("node", "end offset", "epoch", "size", "file"),
            (
                (
                    one.node_id,
                    one.end_offset,
                    one.epoch,
                    None if one.size_bytes is None else format_bytes(one.size_bytes),
                    one.file,
                )
                for one in found.snapshots
            ),
        )
    elif not found.unanswered:
        say("There are no snapshots yet.")
    if found.unanswered:
        raise click.ClickException(" ".join(one.sentence() for one in found.unanswered))


def _print_replicas(state: QuorumState) -> None:
    time_ms = now_ms()
    rows = [("voter", replica) for replica in state.current_voters]
    rows += [("observer", replica) for replica in state.observers]
    print_table(
        ("node", "role", "log end offset", "lag", "caught up", "last heard"),
        (
            (
                int(replica.replica_id),
                "leader" if replica.replica_id == state.leader_id else role,
                "not heard" if _is_unheard(replica, state) else _known(replica.log_end_offset),
                _lag(replica, state),
                # A node that has no leader does not know what is there to catch up with.
                None if state.leader_id == _UNKNOWN else _age(int(replica.last_caught_up_timestamp), time_ms),
                _age(int(replica.last_fetch_timestamp), time_ms),
            )
            for role, replica in rows
        ),
    )


async def _ask(bootstrap: Bootstrap) -> QuorumState:
    """The answer of the first address that names a leader, else of one that describes the quorum without one.

    Raises what the last one gave instead.
    """
    asked = {asyncio.ensure_future(_ask_one(bootstrap, address)) for address in bootstrap.addresses}
    leaderless: QuorumState | None = None
    failure: KafkaError | CorruptData | OSError | None = None
    try:
        while asked:
            wait_s = None if leaderless is None else _SECOND_OPINION_S
            done, asked = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED, timeout=wait_s)
            if not done:
                break
            for task in done:
                try:
                    state = task.result()
                except (KafkaError, CorruptData, OSError) as error:
                    failure = error
                    continue
                if state.leader_id != _UNKNOWN:
                    return state
                leaderless = leaderless or state
    finally:
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)
    if leaderless is not None:
        return leaderless
    assert failure is not None, "there is an address"
    raise failure


async def _ask_one(bootstrap: Bootstrap, address: Address) -> QuorumState:
    question = DescribeQuorumRequest(
        topics=(TopicData(topic_name=TopicName(METADATA_TOPIC), partitions=(PartitionData(partition_index=i32(0)),)),)
    )
    async with await bootstrap.connect(address.host, address.port) as connection:
        answer = await connection.call(question)
    assert isinstance(answer, DescribeQuorumResponse)
    state = answer.topics[0].partitions[0] if answer.topics else None
    code = ErrorCode(int(answer.error_code or (0 if state is None else state.error_code)))
    if state is not None and (code is ErrorCode.NONE or (state.leader_id == _UNKNOWN and state.current_voters)):
        return state
    message = answer.error_message or (None if state is None else state.error_message)
    raise KafkaError(code, f"{address} does not describe the quorum: {message or error_info(code).sentence}")


def _problem(state: QuorumState) -> str | None:
    """What a node without a leader says of it."""
    if not state.error_code:
        return None
    return find_no_quorum((state.error_message or "").encode()) or "no leader: the voters have not elected one yet"


def _described(replica: ReplicaState, state: QuorumState) -> dict[str, int | None]:
    return {
        "id": int(replica.replica_id),
        "log_end_offset": None if _is_unheard(replica, state) else _known(replica.log_end_offset),
        "lag": _lag(replica, state),
        "last_caught_up_timestamp_ms": _known(replica.last_caught_up_timestamp),
        "last_fetch_timestamp_ms": _known(replica.last_fetch_timestamp),
    }


def _is_unheard(replica: ReplicaState, state: QuorumState) -> bool:
    """Whether nothing has come from it: in this leadership, or lately where there is no leader."""
    never = replica.last_fetch_timestamp == _UNKNOWN
    return never and replica.log_end_offset <= (_UNKNOWN if state.leader_id == _UNKNOWN else 0)


def _lag(replica: ReplicaState, state: QuorumState) -> int | None:
    """Entries that the leader has and it has not; None where the leader does not know."""
    leader = next((one for one in state.current_voters if one.replica_id == state.leader_id), None)
    if leader is None or replica.log_end_offset == _UNKNOWN or _is_unheard(replica, state):
        return None
    return int(max(0, leader.log_end_offset - replica.log_end_offset))


def _known(value: int) -> int | None:
    return None if value == _UNKNOWN else int(value)


def _age(timestamp_ms: int, time_ms: int) -> str | None:
    return None if timestamp_ms == _UNKNOWN else format_age(max(0, time_ms - timestamp_ms))
