"""Properties of clients: as Spark's connector takes them, and as librdkafka does."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from ...client.client_properties import librdkafka_properties
from ..config import JobConfig

Side: TypeAlias = Literal["source", "sink"]
SOURCE: Final[Side] = "source"
SINK: Final[Side] = "sink"


def java_properties(config: JobConfig, side: Side) -> dict[str, str]:
    """In Apache Kafka's names, without bootstrap.servers."""
    own = config.source_kafka if side == SOURCE else config.sink_kafka
    return {**config.kafka, **own}


def bootstrap_of(config: JobConfig, side: Side) -> str:
    return config.bootstrap if side == SOURCE else config.sink_bootstrap or config.bootstrap


def spark_options(config: JobConfig, side: Side, *, bootstrap: str = "") -> dict[str, str]:
    """Options of Spark's `kafka` format: each property behind `kafka.`. `bootstrap` in place of the config's."""
    options = {f"kafka.{name}": value for name, value in java_properties(config, side).items()}
    return {**options, "kafka.bootstrap.servers": bootstrap or bootstrap_of(config, side)}


def client_config(config: JobConfig, side: Side, *, bootstrap: str = "") -> dict[str, str]:
    """The same for a client of librdkafka. Raises ConfigError for properties that it cannot have."""
    return {
        **librdkafka_properties(java_properties(config, side)),
        "bootstrap.servers": bootstrap or bootstrap_of(config, side),
    }
