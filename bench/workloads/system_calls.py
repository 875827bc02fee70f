"""What one request costs a broker: microseconds of CPU, and system calls, for each of a few kinds.

Each load runs twice: once to be timed, and once more, shorter, under strace, which counts the calls of all threads and
slows them down. What brokers do beside it is counted too; in the second or so that a load takes that is little.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from signal import SIGINT
from typing import Final

import click
from msgspec import Struct

from ...client import clock
from ...client.addresses import parse_addresses
from ..coordinators import coordinator_of
from ..payloads import values
from ..target import Target
from ..topics import TIMEOUT_S, admin, leaders, new_topic
from ..usage import measured
from ..wire import ProduceFrame, Socket, batch, fetch_frame, next_offsets
from .offset_commits import PARTITIONS as COMMITTED_PARTITIONS
from .offset_commits import Commits
from .prepared import BATCH_BYTES, send_rounds

SMALL_BYTES: Final = 100
LARGE_BYTES: Final = 1024
PARTITIONS: Final = 6
EMPTY_PARTITIONS: Final = 100
IN_FLIGHT: Final = 5
_TRACED_PART: Final = 20
"""As many fewer are traced."""
_MICROSECONDS: Final = 1e6
_MIB: Final = 1024 * 1024
_ATTACH_POLL_S: Final = 0.01
_ATTACH_TIMEOUT_S: Final = 10.0


class Load(Struct, frozen=True):
    """`run` makes so many requests; each is `parts` of what the values are told for."""

    name: str
    count: int
    parts: int
    run: Callable[[int], None]


def system_calls(target: Target, *, part: int = 1) -> Mapping[str, float | None]:
    """`part`: only that part of each load."""
    if shutil.which("strace") is None:
        raise click.ClickException("System calls are counted by strace, which is not installed (Debian: strace).")
    if not target.pids:
        raise click.ClickException("System calls are counted where the processes are known: --pid.")
    found: dict[str, float | None] = {}
    with _loads(target) as loads:
        for load in loads:
            count = max(load.count // part, _TRACED_PART)
            load.run(count)
            with measured(target.pids) as usage:
                load.run(count)
            assert usage.broker_cpu_s is not None, "the processes are known"
            found[f"{load.name}_cpu_us"] = usage.broker_cpu_s / (count * load.parts) * _MICROSECONDS
            traced = count // _TRACED_PART
            with _counting(target.pids) as calls:
                load.run(traced)
            found[f"{load.name}_calls"] = sum(calls) / (traced * load.parts)
    return found


@contextmanager
def _loads(target: Target) -> Iterator[Sequence[Load]]:
    with ExitStack() as stack:
        small = stack.enter_context(new_topic(target, 1))
        large = stack.enter_context(new_topic(target, PARTITIONS))
        empty = stack.enter_context(new_topic(target, EMPTY_PARTITIONS))

        def connect(address: tuple[str, int]) -> Socket:
            return stack.enter_context(Socket(address))

        record = ProduceFrame.of(small, {0: batch(values(SMALL_BYTES)[:1])})
        one = [(connect(address), record) for address in leaders(target, small)]
        lanes = [(connect(address), own) for address, own in leaders(target, large).items()]
        data = batch(values(LARGE_BYTES)[: BATCH_BYTES // LARGE_BYTES - 1])
        large_requests = [(connection, ProduceFrame.of(large, dict.fromkeys(own, data))) for connection, own in lanes]
        batches = sum(len(own) for _, own in lanes)
        empty_lanes = [(connect(address), own) for address, own in leaders(target, empty).items()]
        group = f"penstock-bench-{clock.now_ms()}"
        coordinator = asyncio.run(coordinator_of(group, parse_addresses(target.bootstrap)))
        assert EMPTY_PARTITIONS >= COMMITTED_PARTITIONS, "what is committed must exist"
        commits = Commits(connect((coordinator.host, int(coordinator.port))), group, empty)
        yield (
            Load("produce_alone", 5_000, 1, lambda count: send_rounds(one, count, 1)),
            Load("produce_piped", 20_000, 1, lambda count: send_rounds(one, count, 50)),
            Load("batch", 2_000, batches, lambda count: send_rounds(large_requests, count)),
            Load("fetch_mib", 100, batches, _fetch(lanes, large)),
            Load("fetch_empty", 300, EMPTY_PARTITIONS, _fetch_nothing(empty_lanes, empty)),
            Load("commit", 4_000, 1, lambda count: commits.send(count, IN_FLIGHT)),
        )
        client = admin(target.bootstrap)  # kept by name: it must outlive its answers
        client.delete_consumer_groups([group])[group].result(TIMEOUT_S)


def _fetch(lanes: Sequence[tuple[Socket, Sequence[int]]], topic: str) -> Callable[[int], None]:
    """A MiB of each partition at a time, from its start to its end and again."""
    starts = [(connection, dict.fromkeys(own, 0)) for connection, own in lanes]

    def run(count: int) -> None:
        positions = [dict(start) for _, start in starts]
        for _ in range(count):
            for (connection, start), position in zip(starts, positions, strict=True):
                connection.send(fetch_frame(topic, position, partition_max_bytes=_MIB))
                came = next_offsets(topic, connection.receive_answer())
                position.update(came if len(came) == len(start) else start)

    return run


def _fetch_nothing(lanes: Sequence[tuple[Socket, Sequence[int]]], topic: str) -> Callable[[int], None]:
    requests = [(connection, fetch_frame(topic, dict.fromkeys(own, 0), max_wait_ms=0)) for connection, own in lanes]

    def run(count: int) -> None:
        for _ in range(count):
            for connection, request in requests:
                connection.send(request)
                connection.receive_answer()

    return run


@contextmanager
def _counting(pids: Sequence[int]) -> Iterator[list[int]]:
    """The list has the number of calls of each process at the end."""
    counts: list[int] = []
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        tracers = []
        try:
            for pid in pids:
                summary = Path(folder) / str(pid)
                command = ("strace", "-f", "-c", "-qq", "-o", str(summary), "-p", str(pid))
                tracers.append((subprocess.Popen(command, stderr=subprocess.DEVNULL), summary))
            for pid in pids:
                _wait_traced(pid)
            yield counts
        finally:
            for tracer, _ in tracers:
                tracer.send_signal(SIGINT)
            for tracer, _ in tracers:
                tracer.wait()
        counts += [_total(summary.read_text()) for _, summary in tracers]


def _wait_traced(pid: int) -> None:
    deadline_s = clock.monotonic_s() + _ATTACH_TIMEOUT_S
    while not all(_tracer_of(task) for task in (Path("/proc") / str(pid) / "task").iterdir()):
        if clock.monotonic_s() > deadline_s:
            raise click.ClickException(f"strace could not attach to process {pid}.")
        clock.pause(_ATTACH_POLL_S)


def _tracer_of(task: Path) -> int:
    for line in (task / "status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "TracerPid":
            return int(value)
    return 0


def _total(summary: str) -> int:
    """The calls of all kinds together, in the last line of strace's table."""
    total = summary.rstrip().rpartition("\n")[2].split()
    if not total or total[-1] != "total":
        raise click.ClickException("strace has counted nothing.")
    return int(total[3])
