"""The ids of the topics that a job reads (KIP-516): a topic that was deleted and made anew under its name has another.

Offsets that a checkpoint or a table has of a topic mean nothing in one of another id.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import KafkaException

from ...protocol.errors import ConfigError
from ..config import JobConfig
from .admin_clients import REQUEST_TIMEOUT_S, admin_client, repeatedly, topic_ids
from .client_properties import SOURCE, client_config
from .deadline import Deadline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG: Final = logging.getLogger(__name__)

# As long as the connector itself waits for a source that is away.
TIMEOUT_S: Final = 180.0


def source_topic_ids(spark: SparkSession, config: JobConfig, deadline: Deadline) -> dict[str, str]:
    """By topic, of those that exist now and have an id. Raises RequestError.

    Empty, with a warning, where librdkafka cannot have the properties that Java's clients have: the job goes on.
    """
    try:
        properties = client_config(config, SOURCE)
        admin_client(properties)
    except (ConfigError, KafkaException) as error:
        _LOG.warning("topics that are deleted and made anew are not found out, as their ids cannot be asked: %s", error)
        return {}
    topics = [*config.offset_topics(), *_matching(spark, config.topic_pattern, properties, deadline)]
    return topic_ids(properties, topics, deadline)


def _matching(spark: SparkSession, pattern: str, properties: dict[str, str], deadline: Deadline) -> list[str]:
    """By Java, as Spark does it: Python's expressions are not quite the same."""
    if not pattern:
        return []
    listed = repeatedly(
        lambda: admin_client(properties).list_topics(timeout=REQUEST_TIMEOUT_S), "topics cannot be listed", deadline
    )
    jvm: Any = spark._jvm
    compiled = jvm.java.util.regex.Pattern.compile(pattern)
    return [topic for topic in listed.topics if compiled.matcher(topic).matches()]
