"""Tiny requests: one record of 100 bytes each, on one connection, so many in flight.

The client is a few system calls around frames that were made before, and answers of one size that are only counted; its
share of the CPU stands beside the broker's. With one in flight the time of each request is kept too. With a producer id
(KIP-98) each request carries the next sequence number, so a broker takes them in this order or not at all.
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
from ..wire import NO_PRODUCER_ID, ProduceFrame, ProducerId, Socket, ask_producer_id, batch

VALUE_BYTES: Final = 100
_WARM_UP: Final = 2_000
_MICROSECONDS: Final = 1e6


def tiny(target: Target, *, in_flight: int, requests: int, is_idempotent: bool = False) -> Mapping[str, float | None]:
    """Send `requests` requests, acknowledged by all replicas."""
    with new_topic(target, 1) as topic:
        (address,) = leaders(target, topic)
        with Socket(address) as connection:
            producer_id = ask_producer_id(connection) if is_idempotent else NO_PRODUCER_ID
            stream = _Requests(connection, topic, _WARM_UP + requests, producer_id)
            stream.one_by_one(_WARM_UP)
            times_ns: list[int] = []
            with measured(target.pids) as usage:
                if in_flight == 1:
                    times_ns = stream.one_by_one(requests)
                else:
                    stream.pipelined(requests, in_flight)
    broker_cpu_s = usage.broker_cpu_s
    return {
        "requests_per_s": requests / usage.seconds,
        "broker_cpu_us_per_request": None if broker_cpu_s is None else broker_cpu_s / requests * _MICROSECONDS,
        "client_cpu_us_per_request": usage.client_cpu_s / requests * _MICROSECONDS,
        "others_cores": usage.others_cores,
        **latencies("request", times_ns),
    }


class _Requests:
    """`count` requests, all of one size and one behind the other, and the connection that they go over."""

    def __init__(self, connection: Socket, topic: str, count: int, producer_id: ProducerId) -> None:
        self._connection = connection
        record = values(VALUE_BYTES)[:1]
        self._first = ProduceFrame.of(topic, {0: batch(record)})
        if producer_id == NO_PRODUCER_ID:
            data = self._first.data * count
        else:
            data = b"".join(
                ProduceFrame.of(topic, {0: batch(record, producer_id=producer_id, base_sequence=number)}).data
                for number in range(count)
            )
        self._unsent = memoryview(data)

    def _send(self, count: int) -> None:
        size = count * len(self._first.data)
        self._connection.send(self._unsent[:size])
        self._unsent = self._unsent[size:]

    def one_by_one(self, count: int) -> list[int]:
        """Nanoseconds from request to answer."""
        times_ns = []
        connection, first = self._connection, self._first
        for _ in range(count):
            start_ns = perf_counter_ns()
            self._send(1)
            answer = connection.receive()
            while len(answer) < first.answer_size:
                answer += connection.receive()
            times_ns.append(perf_counter_ns() - start_ns)
            first.check(answer)
        return times_ns

    def pipelined(self, count: int, in_flight: int) -> None:
        """For each answer that comes, another request goes out; what came together goes out together."""
        sent = min(in_flight, count)
        self._send(sent)
        answered = 0
        unread = b""
        answer_size = self._first.answer_size
        while answered < count:
            unread += self._connection.receive()
            came = len(unread) // answer_size
            whole = came * answer_size
            self._first.check(unread[:whole])
            unread = unread[whole:]
            answered += came
            more = min(came, count - sent)
            if more:
                self._send(more)
                sent += more
