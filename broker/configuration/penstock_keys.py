"""The few configuration keys that Apache Kafka does not have. They are told at start only, but for the last, and
described nowhere else.

admin.listeners           where HTTP administration listens: `http://host:port,…`; port 0 is one that the system
                          chooses, an empty list none at all.
admin.advertised.listeners
                          the same as others reach it; the addresses of `admin.listeners` when it is not set.
                          DescribeConfigs of the node tells it, with the ports that the system chose.
admin.allowed.hosts       names in the Host header under which it answers, beside addresses, localhost and the names in
                          `admin.advertised.listeners` (DNS rebinding).
broker.fast.fencing.enable
                          whether a controller shuts a broker out at once when its process is gone (decision 6), or
                          always waits for the end of its session. False where proxies stand between nodes: those refuse
                          connections for brokers that are alive.
cluster.id                the id of a new cluster. Several controllers that start with empty disks must all be told the
                          same, as Apache Kafka's are when their disks are formatted; a controller alone draws one.
cluster.secret            what nodes of one cluster prove to each other that they know (`links/rules/peer_proof.py`).
                          A node that has neither this nor the next takes no other for one of its cluster.
cluster.certificate.name  the name that the certificate of a node has, with `{id}` where its number is
                          (`quorum/links/rules/node_certificates.py`). When there is a secret too, both are asked for.
log.dir.reserve.bytes     of the disk of each log directory this much is kept free of records, so that what must go on
                          (the metadata journal, checkpoints) has room when producers filled the rest. -1: 64 MiB, or
                          a tenth of the disk where that is less. 0: records may fill the disk.
log.level                 from which level on the node logs: FATAL, ERROR, WARN, INFO, DEBUG or TRACE (no line is
                          below DEBUG). Administrators change single loggers later (`broker/configuration/loggers.py`).
metrics.per.partition     whether metrics have series of each partition: size, offsets, segments, ISR. This one may
                          change while the broker runs, as a dynamic config of one broker or of all.
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


METRICS_PER_PARTITION: Final = "metrics.per.partition"
BROKER_FAST_FENCING_ENABLE: Final = "broker.fast.fencing.enable"
LOG_DIR_RESERVE_BYTES: Final = "log.dir.reserve.bytes"
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
PENSTOCK_KEYS: Final[Mapping[str, PenstockKey]] = MappingProxyType(
    {
        ADMIN_LISTENERS: PenstockKey("http://127.0.0.1:0", ConfigType.LIST),
        ADMIN_ADVERTISED_LISTENERS: PenstockKey("", ConfigType.LIST),
        ADMIN_ALLOWED_HOSTS: PenstockKey("", ConfigType.LIST),
        BROKER_FAST_FENCING_ENABLE: PenstockKey("true", ConfigType.BOOLEAN),
        CLUSTER_ID: PenstockKey("", ConfigType.STRING),
        CLUSTER_SECRET: PenstockKey("", ConfigType.PASSWORD),
        CLUSTER_CERTIFICATE_NAME: PenstockKey("", ConfigType.STRING),
        LOG_DIR_RESERVE_BYTES: PenstockKey("-1", ConfigType.LONG),
        LOG_LEVEL: PenstockKey("INFO", ConfigType.STRING),
        METRICS_PER_PARTITION: PenstockKey("false", ConfigType.BOOLEAN),
    }
)
