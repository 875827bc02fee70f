"""Properties of clients: as Spark's connector takes them, and as librdkafka does."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from ...client.client_properties import librdkafka_properties
from ..config import JobConfig

Side: TypeAlias = Literal["source", "sink"]
SOURCE: Final[Side] = "source"
SINK: Final[Side] = "sink"

_SOURCE_TIMES: Final = {"request.timeout.ms": "20000", "default.api.timeout.ms": "20000"}
"""Java's admin client, by which the connector asks for ends, remembers who led: once that broker is gone from the
metadata, a call waits for it until `default.api.timeout.ms` is over, and only the next one, of a new client, asks who
leads now. A minute by default; here more than a session of a broker, as readers wait for a new leader as long."""
_FETCH_WAIT: Final = {"fetch.max.wait.ms": "10"}
"""Spark reads only what is there, and has nothing to wait for. Its consumers fetch ahead all the same, and where a
batch ends with its partition, what they ask next on that connection waits behind the fetch: half a second for each."""
_SOURCE_ATTEMPTS: Final = "9"
"""So that a source that is away is waited for as long as by Spark's and Java's defaults: three minutes."""


def java_properties(config: JobConfig, side: Side) -> dict[str, str]:
    """In Apache Kafka's names, without bootstrap.servers."""
    own = config.source_kafka if side == SOURCE else config.sink_kafka
    return {**config.kafka, **own}


def bootstrap_of(config: JobConfig, side: Side) -> str:
    return config.bootstrap if side == SOURCE else config.sink_bootstrap or config.bootstrap


def spark_options(config: JobConfig, side: Side, *, bootstrap: str = "") -> dict[str, str]:
    """Options of Spark's `kafka` format: each property behind `kafka.`. `bootstrap` in place of the config's."""
    properties = java_properties(config, side)
    options = {"kafka.bootstrap.servers": bootstrap or bootstrap_of(config, side)}
    if side == SOURCE:
        properties = {**_FETCH_WAIT, **properties}
        options["fetchOffset.numRetries"] = _SOURCE_ATTEMPTS
        if not properties.keys() & _SOURCE_TIMES.keys():
            properties |= _SOURCE_TIMES
    return {**{f"kafka.{name}": value for name, value in properties.items()}, **options}


def client_config(config: JobConfig, side: Side, *, bootstrap: str = "") -> dict[str, str]:
    """The same for a client of librdkafka. Raises ConfigError for properties that it cannot have."""
    return {
        **librdkafka_properties(java_properties(config, side)),
        "bootstrap.servers": bootstrap or bootstrap_of(config, side),
    }
