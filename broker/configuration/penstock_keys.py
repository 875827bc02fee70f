"""The few configuration keys that Apache Kafka does not have. They are told at start only, but for the metrics'.

`penstock_documentation.py` says what each means.
"""

import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from ...quorum.configs.definition import ConfigType
from .admin_listeners import ADMIN_ADVERTISED_LISTENERS, ADMIN_ALLOWED_HOSTS, ADMIN_LISTENERS


class PenstockKey(NamedTuple):
    default: str
    type: ConfigType


METRICS_KAFKA_EXPORTER: Final = "metrics.kafka.exporter"
METRICS_PER_PARTITION: Final = "metrics.per.partition"
REMOTE_LOG_STORAGE_URL: Final = "remote.log.storage.url"
METRICS_KEYS: Final = frozenset({METRICS_KAFKA_EXPORTER, METRICS_PER_PARTITION})
"""Read when metrics are, from the configuration in effect."""
BROKER_FAST_FENCING_ENABLE: Final = "broker.fast.fencing.enable"
BROKER_SUSPICION_MAX_MS: Final = "broker.suspicion.max.ms"
LOG_DIR_RESERVE_BYTES: Final = "log.dir.reserve.bytes"
LOG_SCRUB_INTERVAL_MS: Final = "log.scrub.interval.ms"
LOG_SCRUB_IO_MAX_BYTES_PER_SECOND: Final = "log.scrub.io.max.bytes.per.second"
LOG_LEVEL: Final = "log.level"
LOG_LEVELS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "FATAL": logging.CRITICAL,
        "ERROR": logging.ERROR,
        "WARN": logging.WARNING,
        "INFO": logging.INFO,
        "DEBUG": logging.DEBUG,
        "TRACE": 5,
    }
)
"""Kafka's names (`LogLevelConfig`), and the levels of the module `logging`, which has none below DEBUG."""
CLUSTER_ID: Final = "cluster.id"
CLUSTER_SECRET: Final = "cluster.secret"
CLUSTER_CERTIFICATE_NAME: Final = "cluster.certificate.name"
CLUSTER_SCRAM_CREDENTIALS: Final = "cluster.scram.credentials"
PENSTOCK_KEYS: Final[Mapping[str, PenstockKey]] = MappingProxyType(
    {
        ADMIN_LISTENERS: PenstockKey("http://127.0.0.1:0", ConfigType.LIST),
        ADMIN_ADVERTISED_LISTENERS: PenstockKey("", ConfigType.LIST),
        ADMIN_ALLOWED_HOSTS: PenstockKey("", ConfigType.LIST),
        BROKER_FAST_FENCING_ENABLE: PenstockKey("true", ConfigType.BOOLEAN),
        BROKER_SUSPICION_MAX_MS: PenstockKey("250", ConfigType.INT),
        CLUSTER_ID: PenstockKey("", ConfigType.STRING),
        CLUSTER_SECRET: PenstockKey("", ConfigType.PASSWORD),
        CLUSTER_CERTIFICATE_NAME: PenstockKey("", ConfigType.STRING),
        CLUSTER_SCRAM_CREDENTIALS: PenstockKey("", ConfigType.PASSWORD),
        LOG_DIR_RESERVE_BYTES: PenstockKey("-1", ConfigType.LONG),
        LOG_LEVEL: PenstockKey("INFO", ConfigType.STRING),
        LOG_SCRUB_INTERVAL_MS: PenstockKey("0", ConfigType.LONG),
        LOG_SCRUB_IO_MAX_BYTES_PER_SECOND: PenstockKey("16777216", ConfigType.LONG),
        METRICS_KAFKA_EXPORTER: PenstockKey("false", ConfigType.BOOLEAN),
        METRICS_PER_PARTITION: PenstockKey("false", ConfigType.BOOLEAN),
        REMOTE_LOG_STORAGE_URL: PenstockKey("", ConfigType.STRING),
    }
)
