"""How long coordinators take to load internal topics that are as large as compaction lets them become.

Compaction bounds a partition of an internal topic by its active segment and what it has left of those before. So a
partition of `__consumer_offsets` and one of `__transaction_state` are filled as large as a segment is, by real commits
of many groups and by producers that begin anew, and the node is started again: after a clean stop, and after SIGKILL.
The times of loading are those that the node tells (Kafka's `partition-load-time-max`).
"""

from __future__ import annotations

import asyncio
import re
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from struct import Struct
from typing import Final

import click

from ...client import clock
from ...client.addresses import parse_addresses
from ...local.local_node import LocalNode
from ...local.readiness import wait_ready
from ..coordinators import TRANSACTION, coordinator_of
from ..node_client import DEADLINE_S
from ..target import START_TIMEOUT_S, Target
from ..topics import TIMEOUT_S, admin, create
from ..wire import INIT_PRODUCER_ID_KEY, INIT_PRODUCER_ID_VERSION, RequestRefusedError, Socket, frame, text
from .offset_commits import PARTITIONS, Commits

GROUPS: Final = 100
TRANSACTIONAL_IDS: Final = 1_000
_PROPERTIES: Final = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}
_TOPIC: Final = "committed"
_COMMITS_A_TURN: Final = 100
_IN_FLIGHT: Final = 50
_TRANSACTION_TIMEOUT_MS: Final = 60_000
_POLL_S: Final = 0.05
_INITIALIZED: Final = Struct(">iiihqh")
_MIB: Final = 1024 * 1024
_KINDS: Final = {"offsets": "group", "transactions": "transaction"}
_FOLDERS: Final = {"offsets": "__consumer_offsets-0", "transactions": "__transaction_state-0"}


def coordinator_load(target: Target, *, size_mib: int) -> Mapping[str, float | None]:
    """Fill a partition of each internal topic with `size_mib`, then load them."""
    assert target.fresh_node is not None, "only asked of targets that can be started"
    with target.fresh_node() as node:
        node.write_properties({**target.settings, **_PROPERTIES})
        node.start()
        wait_ready((node,), timeout_s=START_TIMEOUT_S)
        create(admin(node.address), _TOPIC, PARTITIONS)
        _commit(node, size_mib * _MIB)
        _begin_transactions(node, size_mib * _MIB)
        values: dict[str, float | None] = {f"{kind}_mib": _size(node.data, kind) / _MIB for kind in _KINDS}
        node.stop(timeout_s=DEADLINE_S)
        values |= {f"{kind}_load_ms": time_ms for kind, time_ms in _load(node).items()}
        node.kill()
        values |= {f"{kind}_kill_load_ms": time_ms for kind, time_ms in _load(node).items()}
        return values


def _size(data: Path, kind: str) -> int:
    return sum(segment.stat().st_size for segment in (data / _FOLDERS[kind]).glob("*.log"))


def _commit(node: LocalNode, size_bytes: int) -> None:
    groups = [f"group-{number:04d}" for number in range(GROUPS)]
    asyncio.run(coordinator_of(groups[0], parse_addresses(node.address)))
    with Socket((node.host, node.port)) as connection:
        streams = [Commits(connection, group, _TOPIC) for group in groups]
        while _size(node.data, "offsets") < size_bytes:
            for stream in streams:
                stream.send(_COMMITS_A_TURN, _IN_FLIGHT)


def _begin_transactions(node: LocalNode, size_bytes: int) -> None:
    ids = [f"transactional-{number:05d}" for number in range(TRANSACTIONAL_IDS)]
    asyncio.run(coordinator_of(ids[0], parse_addresses(node.address), kind=TRANSACTION))
    timeout = Struct(">i").pack(_TRANSACTION_TIMEOUT_MS)
    frames = [frame(INIT_PRODUCER_ID_KEY, INIT_PRODUCER_ID_VERSION, text(one) + timeout) for one in ids]
    with Socket((node.host, node.port)) as connection:
        while _size(node.data, "transactions") < size_bytes:
            for first in range(0, len(frames), _IN_FLIGHT):
                some = frames[first : first + _IN_FLIGHT]
                connection.send(b"".join(some))
                for _ in some:
                    code = _INITIALIZED.unpack(connection.receive_answer())[3]
                    if code:
                        raise RequestRefusedError(f"a producer was refused with error code {code}")


def _load(node: LocalNode) -> dict[str, float]:
    """Start the node; milliseconds that loading took."""
    node.start()
    wait_ready((node,), timeout_s=START_TIMEOUT_S)
    deadline_s = clock.monotonic_s() + TIMEOUT_S
    while True:
        with urllib.request.urlopen(f"{node.admin}/metrics", timeout=TIMEOUT_S) as answer:
            exposed = answer.read().decode()
        times = {
            kind: re.search(rf"^kafka_server_{name}_coordinator_metrics_partition_load_time_max (\S+)$", exposed, re.M)
            for kind, name in _KINDS.items()
        }
        found = {kind: float(time[1]) for kind, time in times.items() if time is not None and float(time[1]) > 0}
        if found.keys() == _KINDS.keys():
            return found
        if clock.monotonic_s() > deadline_s:
            raise click.ClickException(f"coordinators have not loaded after {TIMEOUT_S:g} s.")
        clock.pause(_POLL_S)
