"""Admin clients, one for each cluster in a process, and what is asked of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Final, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition, Uuid
from confluent_kafka.admin import AdminClient, OffsetSpec, TopicDescription

from .deadline import Deadline
from .errors import RequestError

T = TypeVar("T")

REQUEST_TIMEOUT_S: Final = 10.0
# A client of a task lives for a second: it waits for no broker longer than that, and has nothing to say about itself.
QUICK_CLIENT: Final[dict[str, str | int | bool]] = {
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 1_000,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 500,
    "enable.metrics.push": False,
    "log_level": 2,
}
# What a broker that is older than topic ids (KIP-516, Apache Kafka 2.8) gives.
NO_TOPIC_ID: Final = str(Uuid(0, 0))
# Offsets of many partitions are asked for in pieces.
_PIECE: Final = 1_000
# Trying again does not help against them.
HOPELESS: Final = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError._AUTHENTICATION,
        KafkaError._INVALID_ARG,
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.INVALID_MSG_SIZE,
        KafkaError.INVALID_TIMESTAMP,
        KafkaError.INVALID_RECORD,
        KafkaError.INVALID_CONFIG,
        KafkaError.INVALID_REPLICATION_FACTOR,
        KafkaError.INVALID_TRANSACTION_TIMEOUT,
        KafkaError.POLICY_VIOLATION,
        KafkaError.UNSUPPORTED_VERSION,
    }
)


def admin_client(properties: Mapping[str, str]) -> AdminClient:
    """Kept by the process: a worker of Spark has one task after the other."""
    return _admin_client(tuple(sorted(properties.items())))


@cache
def _admin_client(properties: tuple[tuple[str, str], ...]) -> AdminClient:
    return AdminClient({**dict(properties), **QUICK_CLIENT})


def error_of(failure: KafkaException) -> KafkaError | None:
    found = failure.args[0] if failure.args else None
    return found if isinstance(found, KafkaError) else None


def is_hopeless(failure: KafkaException) -> bool:
    error = error_of(failure)
    return error is not None and error.code() in HOPELESS


def repeatedly(ask: Callable[[], T], what: str, deadline: Deadline) -> T:
    """What is asked, as soon as there is an answer. Raises RequestError at the deadline, or when there will be none."""
    while True:
        try:
            return ask()
        except KafkaException as failure:
            if deadline.is_over or is_hopeless(failure):
                raise RequestError(f"{what}: {failure}") from failure
            # A client that knows a controller which is gone waits for it minutes long: another one asks anew.
            _admin_client.cache_clear()
            deadline.pause()


def describe_topics(
    properties: Mapping[str, str], topics: Sequence[str], deadline: Deadline
) -> dict[str, TopicDescription]:
    """Those that exist. Raises RequestError."""
    found: dict[str, TopicDescription] = {}

    def ask() -> None:
        futures = admin_client(properties).describe_topics(
            TopicCollection(list(topics)), request_timeout=REQUEST_TIMEOUT_S
        )
        for name, future in futures.items():
            try:
                found[name] = future.result()
            except KafkaException as failure:
                error = error_of(failure)
                if error is None or error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise

    if topics:
        repeatedly(ask, f"topics {', '.join(sorted(topics)[:5])} cannot be described", deadline)
    return found


def topic_id(properties: Mapping[str, str], topic: str, deadline: Deadline) -> str | None:
    """None when there is no such topic."""
    found = describe_topics(properties, [topic], deadline).get(topic)
    return None if found is None else str(found.topic_id)


def topic_ids(properties: Mapping[str, str], topics: Sequence[str], deadline: Deadline) -> dict[str, str]:
    """As Kafka's tools print them, of topics that exist and have one. Raises RequestError."""
    described = describe_topics(properties, topics, deadline)
    found = {topic: str(one.topic_id) for topic, one in described.items()}
    # librdkafka prints base64 with + and /, Kafka that of URLs.
    return {topic: one.replace("+", "-").replace("/", "_") for topic, one in found.items() if one != NO_TOPIC_ID}


def list_offsets(
    properties: Mapping[str, str],
    wanted: Mapping[tuple[str, int], OffsetSpec],
    deadline: Deadline,
    **options: object,
) -> dict[tuple[str, int], int]:
    """By topic and partition. Raises RequestError."""
    found: dict[tuple[str, int], int] = {}
    places = list(wanted)
    for first in range(0, len(places), _PIECE):
        piece = {TopicPartition(*place): wanted[place] for place in places[first : first + _PIECE]}

        def ask(piece: dict[TopicPartition, OffsetSpec] = piece) -> None:
            futures = admin_client(properties).list_offsets(piece, request_timeout=REQUEST_TIMEOUT_S, **options)
            for place, future in futures.items():
                found[place.topic, place.partition] = int(future.result().offset)

        repeatedly(ask, "offsets cannot be listed", deadline)
    return found
