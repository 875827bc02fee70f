"""What the configuration keys mean that Apache Kafka does not have, as data: for operators, and for programs."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ...quorum.configs.own_keys import BROKER_DRAINED
from .admin_listeners import ADMIN_ADVERTISED_LISTENERS, ADMIN_ALLOWED_HOSTS, ADMIN_LISTENERS
from .penstock_keys import (
    BROKER_FAST_FENCING_ENABLE,
    BROKER_SUSPICION_MAX_MS,
    CLUSTER_CERTIFICATE_NAME,
    CLUSTER_ID,
    CLUSTER_SCRAM_CREDENTIALS,
    CLUSTER_SECRET,
    LOG_DIR_RESERVE_BYTES,
    LOG_LEVEL,
    LOG_SCRUB_INTERVAL_MS,
    LOG_SCRUB_IO_MAX_BYTES_PER_SECOND,
    METRICS_KAFKA_EXPORTER,
    METRICS_PER_PARTITION,
    REMOTE_LOG_STORAGE_URL,
)

DOCUMENTATION: Final[Mapping[str, str]] = MappingProxyType(
    {
        ADMIN_LISTENERS: (
            "Where HTTP administration listens: http://host:port or https://host:port, separated by commas. Port 0 is "
            "one that the system chooses, an empty list none at all. "
            "Its keys of TLS and SASL are listener.name.admin.*."
        ),
        ADMIN_ADVERTISED_LISTENERS: (
            "The same as others reach it; the addresses of admin.listeners when it is not set. DescribeConfigs of the "
            "node tells it, with the ports that the system chose."
        ),
        ADMIN_ALLOWED_HOSTS: (
            "Names in the Host header under which HTTP administration answers, beside addresses, localhost and the "
            "names in admin.advertised.listeners (DNS rebinding)."
        ),
        BROKER_DRAINED: (
            "Whether the broker leads nothing that another in-sync replica can lead, and takes no new replicas while "
            "enough other brokers are there. Of one broker, never of all. until-restart: the broker ends the drain by "
            "itself when it has been restarted and has caught up."
        ),
        BROKER_FAST_FENCING_ENABLE: (
            "Whether a controller shuts a broker out at once when its process is gone, or always waits for the end of "
            "its session. False where proxies stand between nodes: those refuse connections for brokers that are alive."
        ),
        BROKER_SUSPICION_MAX_MS: (
            "For how long at most a broker waits with answers that name another broker as a leader or coordinator, "
            "when that one's side has just closed its connections: its process has probably ended, and another leader "
            "will be elected in a moment. 0: answers never wait."
        ),
        CLUSTER_ID: (
            "The id of a new cluster. Several controllers that start with empty disks must all be told the same, as "
            "Apache Kafka's are when their disks are formatted; a controller alone draws one."
        ),
        CLUSTER_SCRAM_CREDENTIALS: (
            "SCRAM credentials that a new cluster begins with, as kafka-storage format --add-scram takes them: "
            "SCRAM-SHA-256=[name=alice,password=…], several of them separated by blanks. Controllers that start with "
            "empty disks must all be told the same; afterwards it has no effect."
        ),
        CLUSTER_SECRET: (
            "What nodes of one cluster prove to each other that they know. Where it is not set, the user and password "
            "by which nodes would log in with PLAIN or SCRAM (sasl.mechanism.controller.protocol, "
            "sasl.mechanism.inter.broker.protocol) are. A node that has neither this nor cluster.certificate.name "
            "takes no other for one of its cluster."
        ),
        CLUSTER_CERTIFICATE_NAME: (
            "The name that the certificate of a node has, with {id} where its number is. When there is a secret too, "
            "both are asked for."
        ),
        REMOTE_LOG_STORAGE_URL: (
            "Where the tier of tiered storage is: s3://bucket/path, gs://bucket/path, az://container/path, or "
            "file:///a/folder that all brokers share. Credentials come from the environment (AWS_…, GOOGLE_…, "
            "AZURE_…). Must be set where remote.log.storage.system.enable is true."
        ),
        LOG_DIR_RESERVE_BYTES: (
            "Of the disk of each log directory this much is kept free of records, so that what must go on (the "
            "metadata journal, checkpoints) has room when producers filled the rest. -1: 64 MiB, or a tenth of the "
            "disk where that is less. 0: records may fill the disk."
        ),
        LOG_LEVEL: (
            "From which level on the node logs: FATAL, ERROR, WARN, INFO, DEBUG or TRACE (no line is below DEBUG). "
            "Administrators change single loggers later."
        ),
        LOG_SCRUB_INTERVAL_MS: (
            "How often all segments of the node's logs are read and checked, from the begin of one round to the "
            "next: bytes that are not read rot unseen. 0 or -1: never."
        ),
        LOG_SCRUB_IO_MAX_BYTES_PER_SECOND: (
            "What such a round reads at most. It takes as long as that makes it, whatever log.scrub.interval.ms is."
        ),
        METRICS_KAFKA_EXPORTER: (
            "Whether metrics have committed offsets and lags of groups, and offsets of partitions, in the names "
            "of kafka_exporter. It may change while the broker runs, as a dynamic config of one broker or of all."
        ),
        METRICS_PER_PARTITION: (
            "Whether metrics have series of each partition: size, offsets, segments, ISR. It may change while the "
            "broker runs, as a dynamic config of one broker or of all."
        ),
    }
)
