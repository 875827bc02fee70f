"""Tiny requests: one record of 100 bytes each, on one connection, so many in flight.

The client is a few system calls around frames that were made before, and answers of one size that are only counted; its
share of the CPU stands beside the broker's. With one in flight the time of each request is kept too.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter_ns
from typing import Final

from ..payloads import values
from ..quantiles import latencies
from ..target import Target
from ..topics import leaders, new_topic
from ..usage import measured
from ..wire import ProduceFrame, Socket, batch

VALUE_BYTES: Final = 100
_WARM_UP: Final = 2_000
_MICROSECONDS: Final = 1e6


def tiny(target: Target, *, in_flight: int, requests: int) -> Mapping[str, float | None]:
    """Send `requests` requests, acknowledged by all replicas."""
    with new_topic(target, 1) as topic:
        (address,) = leaders(target, topic)
        request = ProduceFrame.of(topic, {0: batch(values(VALUE_BYTES)[:1])})
        with Socket(address) as connection:
            _one_by_one(connection, request, _WARM_UP)
            times_ns: list[int] = []
            with measured(target.pids) as usage:
                if in_flight == 1:
                    times_ns = _one_by_one(connection, request, requests)
                else:
                    _pipelined(connection, request, requests, in_flight)
    broker_cpu_s = usage.broker_cpu_s
    return {
        "requests_per_s": requests / usage.seconds,
        "broker_cpu_us_per_request": None if broker_cpu_s is None else broker_cpu_s / requests * _MICROSECONDS,
        "client_cpu_us_per_request": usage.client_cpu_s / requests * _MICROSECONDS,
        "others_cores": usage.others_cores,
        **latencies("request", times_ns),
    }


def _one_by_one(connection: Socket, request: ProduceFrame, requests: int) -> list[int]:
    """Nanoseconds from request to answer."""
    times_ns = []
    for _ in range(requests):
        start_ns = perf_counter_ns()
        connection.send(request.data)
        answer = connection.receive()
        while len(answer) < request.answer_size:
            answer += connection.receive()
        times_ns.append(perf_counter_ns() - start_ns)
        request.check(answer)
    return times_ns


def _pipelined(connection: Socket, request: ProduceFrame, requests: int, in_flight: int) -> None:
    """For each answer that comes, another request goes out; what came together goes out together."""
    copies = [request.data * count for count in range(in_flight + 1)]
    sent = min(in_flight, requests)
    connection.send(copies[sent])
    answered = 0
    unread = b""
    while answered < requests:
        unread += connection.receive()
        count = len(unread) // request.answer_size
        whole = count * request.answer_size
        request.check(unread[:whole])
        unread = unread[whole:]
        answered += count
        more = min(count, requests - sent)
        if more:
            connection.send(copies[more])
            sent += more
