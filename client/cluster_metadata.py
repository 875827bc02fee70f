"""Metadata of a cluster that loses nodes, as a client on librdkafka is told it."""

from __future__ import annotations

from typing import Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata

from . import clock

# An answer takes milliseconds, and a second where the machine is busy.
_ASK_S: Final = 5.0
_POLL_S: Final = 0.02
_NO_ANSWER: Final = frozenset({KafkaError._TIMED_OUT, KafkaError._TRANSPORT})


def ask_metadata(admin: AdminClient, topic: str | None = None, *, timeout_s: float = 90.0) -> ClusterMetadata:
    """What `list_topics` returns, of all topics or of one, asked again until there is an answer.

    A single call can wait for nothing although brokers are up: it chooses a broker when it begins. When librdkafka has
    not noticed yet that this one is gone, it keeps the request for it, which was never sent and so has no retries to
    use up, until the time of the call is over or an answer to another request leaves the broker out. The next request
    may be minutes away: the one that follows the loss often comes before the broker is fenced. The next call chooses
    among the brokers that are up.

    Raises KafkaException for a refusal, and when no broker answers in `timeout_s` seconds.
    """
    deadline_s = clock.monotonic_s() + timeout_s
    while True:
        try:
            return admin.list_topics(topic, timeout=max(_POLL_S, min(_ASK_S, deadline_s - clock.monotonic_s())))
        except KafkaException as error:
            if error.args[0].code() not in _NO_ANSWER or clock.monotonic_s() >= deadline_s:
                raise
        clock.pause(_POLL_S)
