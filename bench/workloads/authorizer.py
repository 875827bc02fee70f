"""What permissions cost: the smallest requests to a node that asks its ACLs for each, and to one without an authorizer.

Two nodes run beside each other and are asked in turn, so that what else runs on the machine has its part in both. The
client proves nothing; as `User:ANONYMOUS` it may write and read its topic by an ACL, among others of other topics and
users. Without ACLs of the cluster everyone may do there what a node does: so Apache Kafka's node can register.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from statistics import median
from typing import Final

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)
from msgspec import Struct

from ..payloads import values
from ..target import Target
from ..topics import TIMEOUT_S, admin, leaders, new_topic
from ..usage import measured
from ..wire import ProduceFrame, Socket, batch, fetch_frame, next_offsets

_SETTINGS: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
_OTHER_ACLS: Final = 100
_IN_FLIGHT: Final = 5
_VALUE_BYTES: Final = 100
_TURNS: Final = 30
_MICROSECONDS: Final = 1e6


def authorizer(target: Target, *, requests: int) -> Mapping[str, float | None]:
    """CPU of the broker for a Produce and a Fetch request of one record; medians of turns of so many each."""
    with ExitStack() as stack:
        clients = {}
        for name, settings in (("without", {}), ("with", _SETTINGS)):
            running, _ = stack.enter_context(target.fresh_running(settings))
            topic = stack.enter_context(new_topic(running, 1))
            if settings:
                _add_acls(running, topic)
            (address,) = leaders(running, topic)
            clients[name] = _Client(running, topic, stack.enter_context(Socket(address)))
        measures: dict[str, float | None] = {}
        for verb, ask in (("produce", _Client.produce), ("fetch", _Client.fetch)):
            found = _asked_in_turn(clients, ask, requests)
            measures |= {f"authorizer_{verb}_{name}_cpu_us": value for name, value in found.items()}
            measures[f"authorizer_{verb}_cpu_ratio"] = found["with"] / found["without"]
    return measures


class _Client(Struct, frozen=True):
    target: Target
    topic: str
    connection: Socket

    def produce(self, count: int) -> None:
        frame = ProduceFrame.of(self.topic, {0: batch(values(_VALUE_BYTES)[:1])})
        self._ask(frame.data, count, frame.check)

    def fetch(self, count: int) -> None:
        """The first record, again and again."""

        def check(answer: memoryview) -> None:
            assert next_offsets(self.topic, answer) == {0: 1}

        self._ask(fetch_frame(self.topic, {0: 0}, partition_max_bytes=1), count, check)

    def _ask(self, data: bytes, count: int, check: Callable[[memoryview], None]) -> None:
        for number in range(count + _IN_FLIGHT):
            if number >= _IN_FLIGHT:
                check(self.connection.receive_answer())
            if number < count:
                self.connection.send(data)


def _asked_in_turn(
    clients: Mapping[str, _Client], ask: Callable[[_Client, int], None], requests: int
) -> dict[str, float]:
    """Microseconds of the broker's CPU for a request, by name."""
    found: dict[str, list[float]] = {name: [] for name in clients}
    for client in clients.values():
        ask(client, requests)
    for number in range(_TURNS):
        # What comes first has the processor's caches as the other node left them: each does every second time.
        for name in sorted(clients, reverse=bool(number % 2)):
            client = clients[name]
            with measured(client.target.pids) as usage:
                ask(client, requests)
            assert usage.broker_cpu_s is not None, "it runs here"
            found[name].append(usage.broker_cpu_s / requests * _MICROSECONDS)
    return {name: median(each) for name, each in found.items()}


def _add_acls(target: Target, topic: str) -> None:
    """Raises KafkaException when they are refused."""
    bindings = [
        *(_allowed("User:ANONYMOUS", topic, operation) for operation in (AclOperation.READ, AclOperation.WRITE)),
        *(_allowed(f"User:user-{number}", f"topic-{number}", AclOperation.READ) for number in range(_OTHER_ACLS)),
    ]
    client = admin(target.bootstrap)
    for answer in client.create_acls(bindings).values():
        answer.result(TIMEOUT_S)


def _allowed(principal: str, topic: str, operation: AclOperation) -> AclBinding:
    return AclBinding(
        ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, principal, "*", operation, AclPermissionType.ALLOW
    )
