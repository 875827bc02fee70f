"""Clients with quotas: how near they settle, what they cost others, and what quotas of a thousand clients cost.

*settle*: a producer, a consumer and an administrator do what their quotas allow, in a process of their own; what they
did is measured from the third window on.

*others*: single records are sent and read at a steady rate, in turn beside those three and while they are stopped.

*users*: a thousand connections, each of another client id with quotas that it does not reach, and a thousand without
quotas send one small request after the other, in turn by the hundred: what else runs on the machine has its part in
both.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from statistics import median
from typing import Final

import click
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic
from kio.schema.alter_client_quotas.v1.request import AlterClientQuotasRequest, EntityData, EntryData, OpData
from kio.schema.alter_client_quotas.v1.response import AlterClientQuotasResponse
from kio.static.primitive import f64

from ...client.client_log import SILENT_LOGGER
from ...client.connection import connect
from ...quorum.metadata.quota_precedence import (
    CLIENT_ID,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
)
from ..limited_clients import ADMINISTRATOR, CONSUMER, FULL, PRODUCER, VALUE_BYTES
from ..payloads import values
from ..steady import DEADLINE_S, WARM_UP_S, SteadyRecords
from ..target import Target
from ..topics import TIMEOUT_S, admin, leaders, new_topic
from ..usage import measured
from ..wire import ProduceFrame, Socket, batch

LIMITS: Final = {
    PRODUCER: (PRODUCER_BYTE_RATE, 1_000_000.0),
    CONSUMER: (CONSUMER_BYTE_RATE, 1_000_000.0),
    ADMINISTRATOR: (CONTROLLER_MUTATION_RATE, 2.0),
}
"""By client id."""
WINDOW_S: Final = 11.0
"""Kafka's default: eleven samples of a second."""
_UNREACHED: Final = 1e12
_LIMITED, _STEADY = "limited", "steady"
_ROUNDS: Final = 30
_GROUP: Final = 100
_MICROSECONDS: Final = 1e6


def quotas_settle(target: Target, *, windows: int) -> Mapping[str, float | None]:
    """Measured over so many windows of the quotas."""
    seconds = windows * WINDOW_S
    with ExitStack() as stack:
        running, _ = stack.enter_context(target.fresh_running())
        _make_topics(running, int(LIMITS[CONSUMER][1] * (seconds + 4 * WINDOW_S)))
        set_quotas(running, [(client_id, (key,), value) for client_id, (key, value) in LIMITS.items()])
        limited = {role: _begin(running, role, 2 * WINDOW_S, seconds) for role in LIMITS}
        deadline_s = seconds + 2 * WINDOW_S + DEADLINE_S
        done = {role: float(process.communicate(timeout=deadline_s)[0]) for role, process in limited.items()}
    return {f"quota_{role}_of_limit": done[role] / limit for role, (_, limit) in LIMITS.items()}


def quotas_others(target: Target, *, rounds: int) -> Mapping[str, float | None]:
    """Medians of so many rounds, each of a window of the quotas."""
    alone: list[Mapping[str, float | None]] = []
    beside: list[Mapping[str, float | None]] = []
    seconds = 2 * (rounds + 2) * WINDOW_S
    with ExitStack() as stack:
        running, _ = stack.enter_context(target.fresh_running())
        _make_topics(running, int(LIMITS[CONSUMER][1] * seconds))
        set_quotas(running, [(client_id, (key,), value) for client_id, (key, value) in LIMITS.items()])
        steady = SteadyRecords(running, _STEADY)
        stack.callback(steady.close)
        limited = [_begin(running, role, 0, seconds) for role in LIMITS]
        for process in limited:
            stack.callback(_end, process)
        # Until they have used what they may do at once.
        steady.run(2 * WINDOW_S)
        for _ in range(rounds):
            beside.append(steady.run(WINDOW_S))
            _signal(limited, signal.SIGSTOP)
            steady.run(WARM_UP_S)
            alone.append(steady.run(WINDOW_S))
            _signal(limited, signal.SIGCONT)
            steady.run(WARM_UP_S)
    measures: dict[str, float | None] = {}
    for name in ("acknowledged", "end_to_end"):
        alone_ms, beside_ms = (median(one[f"{name}_p99_ms"] or 0 for one in found) for found in (alone, beside))
        measures[f"quota_others_{name}_p99_alone_ms"] = alone_ms
        measures[f"quota_others_{name}_p99_beside_ms"] = beside_ms
        measures[f"quota_others_{name}_p99_ratio"] = beside_ms / alone_ms
    return measures


def quotas_users(target: Target, *, users: int) -> Mapping[str, float | None]:
    """CPU of the broker for a request of a hundred bytes."""
    with ExitStack() as stack:
        running, _ = stack.enter_context(target.fresh_running())
        topic = stack.enter_context(new_topic(running, 1))
        (address,) = leaders(running, topic)
        records = {0: batch(values(100)[:1])}
        names = [f"client-{number}" for number in range(2 * users)]
        # In turn, so that both lie in memory alike.
        limited = names[::2]
        clients = [
            (stack.enter_context(Socket(address)), ProduceFrame.of(topic, records, client_id=name)) for name in names
        ]
        _ask_all(clients)
        set_quotas(running, [(name, (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE), _UNREACHED) for name in limited])
        _ask_all(clients)
        without: list[float] = []
        with_quotas: list[float] = []
        for number in range(_ROUNDS):
            for start in range(0, 2 * users, 2 * _GROUP):
                pair = [(0, with_quotas), (1, without)]
                for place, found in pair if number % 2 else reversed(pair):
                    found.append(_measured_us(running, clients[start + place : start + 2 * _GROUP : 2]))
        without_us, with_us = median(without), median(with_quotas)
    return {
        "quota_users_without_cpu_us": without_us,
        "quota_users_with_cpu_us": with_us,
        "quota_users_cpu_ratio": with_us / without_us,
    }


def set_quotas(target: Target, quotas: Iterable[tuple[str, Iterable[str], float | None]]) -> None:
    """Of client ids: keys, and the value of each, None for none. Raises ClickException if one is refused."""
    entries = tuple(
        EntryData(
            entity=(EntityData(entity_type=CLIENT_ID, entity_name=client_id),),
            ops=tuple(OpData(key=key, value=f64(value or 0.0), remove=value is None) for key in keys),
        )
        for client_id, keys, value in quotas
    )

    async def alter() -> None:
        host, _, port = target.bootstrap.rpartition(":")
        async with await connect(host, int(port)) as connection:
            answer = await connection.call(AlterClientQuotasRequest(entries=entries, validate_only=False))
            assert isinstance(answer, AlterClientQuotasResponse)
            refused = [entry.error_message for entry in answer.entries if int(entry.error_code)]
            if refused:
                raise click.ClickException(f"{target.name}: quotas were refused: {refused[0]}")

    asyncio.run(alter())


def _make_topics(target: Target, size_bytes: int) -> None:
    """One of them with so many bytes of records."""
    client = admin(target.bootstrap)
    topics = [NewTopic(name, 1, 1) for name in (_LIMITED, FULL, _STEADY)]
    for answer in client.create_topics(topics, operation_timeout=TIMEOUT_S).values():
        answer.result(TIMEOUT_S)
    producer = Producer({"bootstrap.servers": target.bootstrap, "linger.ms": 5}, logger=SILENT_LOGGER)
    value = bytes(VALUE_BYTES)
    for _ in range(size_bytes // VALUE_BYTES):
        while len(producer) > 10_000:
            producer.poll(0.01)
        producer.produce(FULL, value, partition=0)
    if producer.flush(DEADLINE_S):
        raise click.ClickException(f"{target.name}: the topic was not filled within {DEADLINE_S:g} s.")


def _begin(target: Target, role: str, from_s: float, seconds: float) -> subprocess.Popen[str]:
    command = (sys.executable, "-P", "-m", "penstock.bench.limited_clients", role, target.bootstrap, _LIMITED)
    return subprocess.Popen((*command, str(from_s), str(seconds)), stdout=subprocess.PIPE, text=True)


def _signal(processes: Iterable[subprocess.Popen[str]], number: signal.Signals) -> None:
    for process in processes:
        process.send_signal(number)


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def _measured_us(target: Target, clients: list[tuple[Socket, ProduceFrame]]) -> float:
    with measured(target.pids) as usage:
        _ask_all(clients)
    assert usage.broker_cpu_s is not None, "it runs here"
    return usage.broker_cpu_s / len(clients) * _MICROSECONDS


def _ask_all(clients: list[tuple[Socket, ProduceFrame]]) -> None:
    for connection, frame in clients:
        connection.send(frame.data)
    for connection, frame in clients:
        answer = connection.receive()
        while len(answer) < frame.answer_size:
            answer += connection.receive()
        frame.check(answer)
