"""Metadata of a cluster whose nodes are killed, as one client on librdkafka is told it."""

from __future__ import annotations

from typing import Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata
from waiting import wait_for

# An answer takes milliseconds, and a second where the machine is busy.
_ASK_S: Final = 5.0
_NO_ANSWER: Final = (KafkaError._TIMED_OUT, KafkaError._TRANSPORT)


def ask_metadata(admin: AdminClient, topic: str | None = None) -> ClusterMetadata:
    """What `list_topics` returns, of all topics or of one, asked again until there is an answer.

    A single call can wait for nothing although brokers are up: it chooses a broker when it begins. When librdkafka has
    not noticed yet that this one is gone, it keeps the request for it, which was never sent and so has no retries to
    use up, until the time of the call is over or an answer to another request leaves the broker out. The next request
    may be minutes away: the one that follows the loss often comes before the broker is fenced. The next call chooses
    among the brokers that are up.
    """

    def answer() -> ClusterMetadata | None:
        try:
            return admin.list_topics(topic, timeout=_ASK_S)
        except KafkaException as error:
            if error.args[0].code() not in _NO_ANSWER:
                raise
            return None

    told = wait_for(answer, "a broker tells its metadata")
    assert told is not None
    return told
