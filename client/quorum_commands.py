"""`penstock quorum status`: who agrees on the metadata of the cluster (KIP-836)."""

from __future__ import annotations

import asyncio
from typing import Final

import click
from kio.schema.describe_quorum.v2.request import DescribeQuorumRequest, PartitionData, TopicData
from kio.schema.describe_quorum.v2.response import DescribeQuorumResponse, ReplicaState
from kio.schema.describe_quorum.v2.response import PartitionData as QuorumState
from kio.schema.types import TopicName
from kio.static.primitive import i32

from ..protocol.errors import CorruptData, ErrorCode, KafkaError, error_info
from .bootstrap import Bootstrap, bootstrap_options
from .connection import connect
from .terminal import print_json, print_table, say

METADATA_TOPIC: Final = "__cluster_metadata"
_UNKNOWN: Final = -1


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@bootstrap_options
def status(bootstrap: Bootstrap, as_json: bool) -> None:
    """Show the leader, the voters, and the brokers that follow from outside, with how far each has come."""
    bootstrap.check_reachable()
    try:
        state = asyncio.run(_ask(bootstrap))
    except (KafkaError, CorruptData, OSError) as error:
        message = str(error)
        raise click.ClickException(f"{message[:1].upper()}{message[1:].rstrip('.')}.") from error
    if as_json:
        print_json(
            {
                "leader_id": int(state.leader_id),
                "epoch": int(state.leader_epoch),
                "high_watermark": int(state.high_watermark),
                "voters": [_described(replica, state) for replica in state.current_voters],
                "observers": [_described(replica, state) for replica in state.observers],
            }
        )
        return
    say(f"leader {state.leader_id}, epoch {state.leader_epoch}, high watermark {state.high_watermark}")
    rows = [("voter", replica) for replica in state.current_voters]
    rows += [("observer", replica) for replica in state.observers]
    print_table(
        ("node", "role", "log end offset", "lag", "caught up at (ms)"),
        (
            (
                int(replica.replica_id),
                "leader" if replica.replica_id == state.leader_id else role,
                int(replica.log_end_offset),
                _lag(replica, state),
                int(replica.last_caught_up_timestamp),
            )
            for role, replica in rows
        ),
    )


async def _ask(bootstrap: Bootstrap) -> QuorumState:
    """The answer of the first address that gives one. Raises what the last one gave instead."""
    question = DescribeQuorumRequest(
        topics=(TopicData(topic_name=TopicName(METADATA_TOPIC), partitions=(PartitionData(partition_index=i32(0)),)),)
    )
    tls = bootstrap.tls()
    failure: KafkaError | CorruptData | OSError | None = None
    for address in bootstrap.addresses:
        try:
            timeout_ms = int(bootstrap.timeout_s * 1000)
            async with await connect(address.host, address.port, timeout_ms=timeout_ms, tls=tls) as connection:
                answer = await connection.call(question)
        except (KafkaError, CorruptData, OSError) as error:
            failure = error
            continue
        assert isinstance(answer, DescribeQuorumResponse)
        state = answer.topics[0].partitions[0] if answer.topics else None
        code = ErrorCode(int(answer.error_code or (0 if state is None else state.error_code)))
        if state is not None and code is ErrorCode.NONE:
            return state
        failure = KafkaError(code, f"{address} does not describe the quorum: {error_info(code).sentence}")
    assert failure is not None, "there is an address"
    raise failure


def _described(replica: ReplicaState, state: QuorumState) -> dict[str, int | None]:
    return {
        "id": int(replica.replica_id),
        "log_end_offset": int(replica.log_end_offset),
        "lag": _lag(replica, state),
        "last_caught_up_timestamp_ms": int(replica.last_caught_up_timestamp),
    }


def _lag(replica: ReplicaState, state: QuorumState) -> int | None:
    """Entries that the leader has and it has not; None where the leader does not know."""
    leader = next((one for one in state.current_voters if one.replica_id == state.leader_id), None)
    if leader is None or replica.log_end_offset == _UNKNOWN:
        return None
    return int(max(0, leader.log_end_offset - replica.log_end_offset))
