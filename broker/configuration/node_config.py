"""What a node is told at start: Apache Kafka's broker properties, read once, checked, and joined in one value.

Kafka: `KafkaConfig`, `DynamicBrokerConfig`.

Keys, units and defaults are Kafka's (`quorum/configs`), but for `DEFAULTS`. A key that Kafka has and Penstock has no
use for is accepted with a warning; one that would promise security that is not there, or that Kafka does not have, is
refused.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from ...protocol.errors import ConfigError
from ...protocol.ids import NodeId
from ...quorum.configs.table import topic_configs
from ...quorum.links.rules.node_certificates import NodeCertificates
from ...quorum.metadata.voters import Voter, parse_voters
from ...quorum.permissions.ruling import AuthorizerSettings
from ...quorum.permissions.token_settings import DelegationTokenConfig
from .admin_listeners import (
    ADMIN_ADVERTISED_LISTENERS,
    ADMIN_ALLOWED_HOSTS,
    ADMIN_LISTENERS,
    AdminListener,
    parse_admin_listeners,
)
from .authorizer_config import load_authorizer
from .group_config import GroupConfig, load_groups
from .hidden_values import hide_secrets
from .initial_credentials import InitialCredential, parse_initial_credentials
from .listener_config import ListenerConfig, parse_listeners
from .node_listeners import (
    advertised_listeners,
    controller_listener_name,
    inter_broker_listener_name,
    sasl_of_listeners,
    security_protocols,
    tls_of_listeners,
)
from .node_proof import check_node_certificates, cluster_secret, node_certificates
from .penstock_keys import (
    BROKER_FAST_FENCING_ENABLE,
    BROKER_SUSPICION_MAX_MS,
    CLUSTER_CERTIFICATE_NAME,
    CLUSTER_ID,
    CLUSTER_SCRAM_CREDENTIALS,
    CLUSTER_SECRET,
    LOG_DIR_RESERVE_BYTES,
    LOG_LEVEL,
    LOG_LEVELS,
    LOG_SCRUB_INTERVAL_MS,
    LOG_SCRUB_IO_MAX_BYTES_PER_SECOND,
    METRICS_KEYS,
)
from .principal_mapping import PrincipalMapping
from .property_values import PropertyValues
from .quorum_times import QuorumTimes, load_quorum_times
from .quota_config import QuotaConfig, load_quotas
from .sasl_config import SaslConfig
from .tier_config import TierConfig, load_tier
from .tls_config import TlsConfig
from .token_config import load_tokens
from .transaction_config import TransactionConfig, load_transactions

# What a node without any property is: all roles, seen from this machine only, its data beside where it was started.
# Kafka has no default for the first three, binds to every interface, and keeps data where other programs clear up.
DEFAULTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.listener.names": "CONTROLLER",
        "listeners": "PLAINTEXT://127.0.0.1:9092",
        "log.dir": "penstock-data",
        # Of a topic that does not say: three, or as many replicas as there are brokers. Set, it is what it says.
        "default.replication.factor": "3",
        # Kafka waits three times as long for a follower that is gone, and so does every producer with acks=all.
        "replica.lag.time.max.ms": "10000",
    }
)
_NO_VARIABLES: Final[Mapping[str, str]] = MappingProxyType({})
REQUEST_TIMEOUT_MS: Final = 30_000
"""Kafka's default of `request.timeout.ms`, of requests between nodes and of waits for a commit; it is no key here."""
# Kafka's -1 means no bound at all; memory held for requests that are still arriving always has one here.
QUEUED_MAX_REQUEST_BYTES: Final = 256 * 1024 * 1024
# Of `replica.selector.class`: who answers consumers. Without it, leaders do.
RACK_AWARE_SELECTOR: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
LEADER_SELECTOR: Final = "org.apache.kafka.common.replica.LeaderSelector"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeConfig:
    """Every field is the Kafka property of that name, dots for underscores, unless it says otherwise."""

    node_id: NodeId
    process_roles: tuple[str, ...]
    # `controller.quorum.voters`; this node alone when it is not set.
    voters: Mapping[NodeId, Voter]
    # What nodes of one cluster prove to each other that they know; empty: nothing.
    cluster_secret: bytes = field(repr=False)
    # How the certificate of a node names it; None: it need not. Without either, no other node is taken for one of ours.
    node_certificates: NodeCertificates | None
    # Of a new cluster; None when it is to be drawn, or asked of others.
    cluster_id: str | None
    # Of a new cluster (`cluster.scram.credentials`).
    initial_credentials: tuple[InitialCredential, ...]
    broker_rack: str | None

    # `listeners` without those of the controller, which are `controller_listeners`; see `advertise`.
    listeners: tuple[ListenerConfig, ...]
    controller_listeners: tuple[ListenerConfig, ...]
    advertised_listeners: tuple[ListenerConfig, ...]
    inter_broker_listener_name: str
    # The first of `controller.listener.names`: the one on which controllers are reached.
    controller_listener_name: str
    # By the name of each listener with SSL that this node has or connects to.
    tls: Mapping[str, TlsConfig]
    # By the name of each listener with SASL that this node has.
    sasl: Mapping[str, SaslConfig]
    # `connection.failed.authentication.delay.ms`: so long is a refusal held back.
    failed_authentication_delay_ms: int

    # `authorizer.class.name`, `super.users`, `allow.everyone.if.no.acl.found`; None: everyone may do everything.
    authorizer: AuthorizerSettings | None
    # None without `delegation.token.secret.key`.
    delegation_tokens: DelegationTokenConfig | None

    # See `penstock_keys`.
    admin_listeners: tuple[AdminListener, ...]
    admin_advertised_listeners: tuple[AdminListener, ...]
    admin_allowed_hosts: tuple[str, ...]

    # From log.dirs, or log.dir when that is not set. The metadata log is in the first of them unless told otherwise.
    log_dirs: tuple[str, ...]
    cordoned_log_dirs: tuple[str, ...]
    # So many logs are copied from one of them to another at a time; as many as there are directories unless set.
    num_replica_alter_log_dirs_threads: int
    metadata_log_dir: str
    # See `penstock_keys`; -1 leaves it to the size of the disk.
    log_dir_reserve_bytes: int
    # Of the module `logging`.
    log_level: int
    num_recovery_threads_per_data_dir: int
    log_flush_scheduler_interval_ms: int
    log_flush_offset_checkpoint_interval_ms: int
    log_flush_start_offset_checkpoint_interval_ms: int
    log_initial_task_delay_ms: int
    replica_high_watermark_checkpoint_interval_ms: int
    log_retention_check_interval_ms: int
    producer_id_expiration_ms: int
    producer_id_expiration_check_interval_ms: int
    log_cleaner_enable: bool
    log_cleaner_threads: int
    log_cleaner_dedupe_buffer_size: int
    log_cleaner_io_max_bytes_per_second: float
    log_cleaner_backoff_ms: int
    # 0: never.
    log_scrub_interval_ms: int
    log_scrub_io_max_bytes_per_second: int

    auto_create_topics_enable: bool
    delete_topic_enable: bool
    num_partitions: int
    default_replication_factor: int
    # The same for topics that this broker creates automatically: what it was told wins over what its controller was.
    auto_create_partition_count: int
    auto_create_replication_factor: int
    # Whether it was not set, and so is as many replicas as there are brokers when these are fewer.
    is_replication_factor_capped: bool
    min_insync_replicas: int
    unclean_leader_election_enable: bool
    unclean_leader_election_interval_ms: int
    auto_leader_rebalance_enable: bool
    leader_imbalance_check_interval_ms: int
    max_request_partition_size_limit: int
    fetch_max_bytes: int
    max_incremental_fetch_session_cache_slots: int

    replica_lag_time_max_ms: int
    replica_fetch_wait_max_ms: int
    replica_fetch_min_bytes: int
    # Of one partition, and of a whole answer; a single larger batch comes whole.
    replica_fetch_max_bytes: int
    replica_fetch_response_max_bytes: int
    replica_fetch_backoff_ms: int
    replica_socket_timeout_ms: int
    num_replica_fetchers: int
    replication_quota_window_num: int
    replication_quota_window_size_seconds: int
    # Whether a leader sends consumers to a replica of their rack (KIP-392): `replica.selector.class`.
    is_closest_replica_read: bool

    # A request frame may be this large; all unfinished ones together hold `queued_max_request_bytes` (-1 is 256 MiB).
    socket_request_max_bytes: int
    queued_max_request_bytes: int
    socket_listen_backlog_size: int
    # Negative: connections are never closed for being idle.
    connections_max_idle_ms: int
    # What a client may push of its metrics, compressed or not (KIP-714).
    telemetry_max_bytes: int
    max_connections: int
    max_connections_per_ip: int
    max_connections_per_ip_overrides: Mapping[str, int]

    broker_heartbeat_interval_ms: int
    broker_session_timeout_ms: int
    initial_broker_registration_timeout_ms: int
    # `controller.quorum.fetch.timeout.ms` and `controller.quorum.request.timeout.ms`, within the session.
    quorum_times: QuorumTimes
    # See `penstock_keys`.
    broker_fast_fencing_enable: bool
    broker_suspicion_max_ms: int
    metadata_log_max_record_bytes_between_snapshots: int
    # 0: only the bytes count.
    metadata_log_max_snapshot_interval_ms: int

    groups: GroupConfig
    transactions: TransactionConfig
    tier: TierConfig
    quotas: QuotaConfig

    # What was set, as text, before defaults: the source STATIC_BROKER_CONFIG of DescribeConfigs.
    properties: Mapping[str, str] = field(repr=False)
    # Of `properties`, those that a configuration provider resolved, as they were written (KIP-297).
    variables: Mapping[str, str]
    # Sentences to log once at start.
    warnings: tuple[str, ...]

    @property
    def is_broker(self) -> bool:
        return "broker" in self.process_roles

    @property
    def is_controller(self) -> bool:
        return "controller" in self.process_roles

    @property
    def bound_listeners(self) -> tuple[ListenerConfig, ...]:
        """Where it listens: a broker that is no controller only knows the controllers' listeners."""
        return (*self.listeners, *self.controller_listeners) if self.is_controller else tuple(self.listeners)

    def principal_mapping_of(self, listener_name: str) -> PrincipalMapping | None:
        """Of a listener on which clients prove by certificates who they are."""
        for listener in (*self.listeners, *self.controller_listeners):
            if listener.name == listener_name and listener.security_protocol == "SSL":
                return self.tls[listener_name].principal_mapping
        return None

    def advertise(self, host_name: str, bound_ports: Mapping[str, int]) -> tuple[ListenerConfig, ...]:
        """The addresses to give to clients: an empty host is `host_name`, port 0 the listener's in `bound_ports`."""
        return tuple(
            ListenerConfig(
                name=listener.name,
                host=listener.host or host_name,
                port=listener.port or bound_ports[listener.name],
                security_protocol=listener.security_protocol,
            )
            for listener in self.advertised_listeners
        )


def load(properties: Mapping[str, str], *, variables: Mapping[str, str] = _NO_VARIABLES) -> NodeConfig:
    """Reads and checks what a node is told. Raises ConfigError with one sentence about the first thing wrong.

    `variables` are the texts, by key, that a configuration provider resolved: a sentence has them instead of the value.
    """
    try:
        return _load(properties, variables)
    except ConfigError as error:
        # Without the first error, which a traceback would show.
        raise ConfigError(hide_secrets(str(error), properties, variables)) from None


def _load(properties: Mapping[str, str], variables: Mapping[str, str]) -> NodeConfig:
    values = PropertyValues(_with_both_ids(properties), DEFAULTS)
    protocols = security_protocols(values)
    controller_names = {name.upper() for name in values.strings("controller.listener.names")}
    all_listeners = parse_listeners("listeners", values.strings("listeners"), protocols)
    listeners = tuple(listener for listener in all_listeners if listener.name not in controller_names)
    controller_listeners = tuple(listener for listener in all_listeners if listener.name in controller_names)
    advertised = advertised_listeners(values, protocols, listeners, controller_names)
    controller_name = controller_listener_name(values)
    inter_broker_name = inter_broker_listener_name(values, advertised)
    log_dirs = values.strings("log.dirs") or values.strings("log.dir")
    admin_listeners = parse_admin_listeners(ADMIN_LISTENERS, values.strings(ADMIN_LISTENERS))
    config = NodeConfig(
        node_id=_node_id(values),
        process_roles=values.strings("process.roles"),
        voters=_voters(values),
        cluster_id=values.text_or_none(CLUSTER_ID) or None,
        initial_credentials=parse_initial_credentials(
            CLUSTER_SCRAM_CREDENTIALS, values.text_or_none(CLUSTER_SCRAM_CREDENTIALS) or ""
        ),
        cluster_secret=cluster_secret(values, protocols, controller_name, inter_broker_name),
        node_certificates=node_certificates(values),
        broker_rack=values.text_or_none("broker.rack"),
        listeners=listeners,
        controller_listeners=controller_listeners,
        advertised_listeners=advertised,
        inter_broker_listener_name=inter_broker_name,
        controller_listener_name=controller_name,
        tls=tls_of_listeners(values, protocols, all_listeners, inter_broker_name, admin_listeners),
        authorizer=load_authorizer(values),
        sasl=sasl_of_listeners(values, all_listeners, inter_broker_name),
        failed_authentication_delay_ms=values.integer("connection.failed.authentication.delay.ms"),
        delegation_tokens=load_tokens(values),
        admin_listeners=admin_listeners,
        admin_advertised_listeners=parse_admin_listeners(
            ADMIN_ADVERTISED_LISTENERS, values.strings(ADMIN_ADVERTISED_LISTENERS)
        ),
        admin_allowed_hosts=tuple(name.lower() for name in values.strings(ADMIN_ALLOWED_HOSTS)),
        log_dirs=log_dirs,
        num_replica_alter_log_dirs_threads=_move_threads(values, len(log_dirs)),
        cordoned_log_dirs=_cordoned(values.strings("cordoned.log.dirs"), log_dirs),
        metadata_log_dir=values.text_or_none("metadata.log.dir") or log_dirs[0],
        log_dir_reserve_bytes=_reserve_bytes(values),
        log_level=_log_level(values),
        num_recovery_threads_per_data_dir=values.integer("num.recovery.threads.per.data.dir"),
        log_flush_scheduler_interval_ms=values.integer("log.flush.scheduler.interval.ms"),
        log_flush_offset_checkpoint_interval_ms=values.integer("log.flush.offset.checkpoint.interval.ms"),
        log_flush_start_offset_checkpoint_interval_ms=values.integer("log.flush.start.offset.checkpoint.interval.ms"),
        log_initial_task_delay_ms=values.integer("log.initial.task.delay.ms"),
        replica_high_watermark_checkpoint_interval_ms=values.integer("replica.high.watermark.checkpoint.interval.ms"),
        log_retention_check_interval_ms=values.integer("log.retention.check.interval.ms"),
        producer_id_expiration_ms=values.integer("producer.id.expiration.ms"),
        producer_id_expiration_check_interval_ms=values.integer("producer.id.expiration.check.interval.ms"),
        log_cleaner_enable=values.boolean("log.cleaner.enable"),
        log_cleaner_threads=values.integer("log.cleaner.threads"),
        log_cleaner_dedupe_buffer_size=values.integer("log.cleaner.dedupe.buffer.size"),
        log_cleaner_io_max_bytes_per_second=values.number("log.cleaner.io.max.bytes.per.second"),
        log_cleaner_backoff_ms=values.integer("log.cleaner.backoff.ms"),
        log_scrub_interval_ms=max(_at_least(values, LOG_SCRUB_INTERVAL_MS, -1), 0),
        log_scrub_io_max_bytes_per_second=_at_least(values, LOG_SCRUB_IO_MAX_BYTES_PER_SECOND, 1),
        auto_create_topics_enable=values.boolean("auto.create.topics.enable"),
        delete_topic_enable=values.boolean("delete.topic.enable"),
        num_partitions=values.integer("num.partitions"),
        default_replication_factor=values.integer("default.replication.factor"),
        auto_create_partition_count=_if_set(values, "num.partitions"),
        auto_create_replication_factor=_if_set(values, "default.replication.factor"),
        is_replication_factor_capped=not values.is_set("default.replication.factor"),
        min_insync_replicas=values.integer("min.insync.replicas"),
        unclean_leader_election_enable=values.boolean("unclean.leader.election.enable"),
        unclean_leader_election_interval_ms=values.integer("unclean.leader.election.interval.ms"),
        auto_leader_rebalance_enable=values.boolean("auto.leader.rebalance.enable"),
        leader_imbalance_check_interval_ms=1000 * values.integer("leader.imbalance.check.interval.seconds"),
        max_request_partition_size_limit=values.integer("max.request.partition.size.limit"),
        fetch_max_bytes=values.integer("fetch.max.bytes"),
        max_incremental_fetch_session_cache_slots=values.integer("max.incremental.fetch.session.cache.slots"),
        replica_lag_time_max_ms=values.integer("replica.lag.time.max.ms"),
        replica_fetch_wait_max_ms=values.integer("replica.fetch.wait.max.ms"),
        replica_fetch_min_bytes=values.integer("replica.fetch.min.bytes"),
        replica_fetch_max_bytes=values.integer("replica.fetch.max.bytes"),
        replica_fetch_response_max_bytes=values.integer("replica.fetch.response.max.bytes"),
        replica_fetch_backoff_ms=values.integer("replica.fetch.backoff.ms"),
        replica_socket_timeout_ms=values.integer("replica.socket.timeout.ms"),
        num_replica_fetchers=values.integer("num.replica.fetchers"),
        replication_quota_window_num=values.integer("replication.quota.window.num"),
        replication_quota_window_size_seconds=values.integer("replication.quota.window.size.seconds"),
        is_closest_replica_read=_is_closest_replica_read(values),
        socket_request_max_bytes=values.integer("socket.request.max.bytes"),
        queued_max_request_bytes=_queued_max_request_bytes(values),
        socket_listen_backlog_size=values.integer("socket.listen.backlog.size"),
        telemetry_max_bytes=values.integer("telemetry.max.bytes"),
        connections_max_idle_ms=values.integer("connections.max.idle.ms"),
        max_connections=values.integer("max.connections"),
        max_connections_per_ip=values.integer("max.connections.per.ip"),
        max_connections_per_ip_overrides=_connection_overrides(values),
        broker_heartbeat_interval_ms=values.integer("broker.heartbeat.interval.ms"),
        broker_session_timeout_ms=values.integer("broker.session.timeout.ms"),
        initial_broker_registration_timeout_ms=values.integer("initial.broker.registration.timeout.ms"),
        quorum_times=load_quorum_times(values),
        broker_fast_fencing_enable=values.boolean(BROKER_FAST_FENCING_ENABLE),
        broker_suspicion_max_ms=_at_least(values, BROKER_SUSPICION_MAX_MS, 0),
        metadata_log_max_record_bytes_between_snapshots=values.integer(
            "metadata.log.max.record.bytes.between.snapshots"
        ),
        metadata_log_max_snapshot_interval_ms=values.integer("metadata.log.max.snapshot.interval.ms"),
        groups=load_groups(values),
        transactions=load_transactions(values),
        tier=load_tier(values),
        quotas=load_quotas(values, all_listeners),
        properties=MappingProxyType(dict(values.properties)),
        variables=variables,
        warnings=(),
    )
    _check_roles(values, config)
    _check_node_certificates(config)
    _check_limits(config)
    return _with_warnings(config, values)


def _with_both_ids(properties: Mapping[str, str]) -> Mapping[str, str]:
    """broker.id is the name that node.id had before; what one of them says holds for both."""
    ids = {name: properties[name] for name in ("node.id", "broker.id") if name in properties}
    if len({text.strip() for text in ids.values()}) > 1:
        raise ConfigError(
            f"node.id is {ids['node.id']}, but broker.id is {ids['broker.id']}: set them to the same value."
        )
    return {**{name: text for text in ids.values() for name in ("node.id", "broker.id")}, **properties}


def _if_set(values: PropertyValues, key: str) -> int:
    """-1, which stands for what the controller was told, when this node was told nothing."""
    return values.integer(key) if values.is_set(key) else -1


def _node_id(values: PropertyValues) -> NodeId:
    values.integer("broker.id")
    return NodeId(values.integer("node.id"))


def _is_closest_replica_read(values: PropertyValues) -> bool:
    name = (values.text_or_none("replica.selector.class") or "").strip()
    if name not in ("", LEADER_SELECTOR, RACK_AWARE_SELECTOR):
        raise ConfigError(
            f"replica.selector.class is {name}, but can only be {RACK_AWARE_SELECTOR} or {LEADER_SELECTOR}: no other "
            "class can be loaded here."
        )
    return name == RACK_AWARE_SELECTOR


def _queued_max_request_bytes(values: PropertyValues) -> int:
    queued = values.integer("queued.max.request.bytes")
    largest = values.integer("socket.request.max.bytes")
    if 0 < queued < largest:
        raise ConfigError(
            f"queued.max.request.bytes is {queued}, but one request may have {largest} (socket.request.max.bytes)."
        )
    return queued if queued > 0 else max(QUEUED_MAX_REQUEST_BYTES, largest)


def _cordoned(entries: tuple[str, ...], log_dirs: tuple[str, ...]) -> tuple[str, ...]:
    """Which of the log directories `cordoned.log.dirs` names, without a slash at the end (KIP-1066)."""
    paths = tuple(path.rstrip("/") for path in log_dirs)
    if "*" in entries:
        if len(entries) > 1:
            raise ConfigError("When cordoned.log.dirs is set to *, it must not contain other values.")
        return paths
    missing = [entry for entry in entries if entry and entry.rstrip("/") not in paths]
    if missing:
        raise ConfigError(
            "All entries in cordoned.log.dirs must be present in log.dirs or log.dir. Missing entries: "
            f"{', '.join(missing)}."
        )
    return tuple(path for path in paths if path in {entry.rstrip("/") for entry in entries})


def _reserve_bytes(values: PropertyValues) -> int:
    reserve_bytes = values.integer(LOG_DIR_RESERVE_BYTES)
    if reserve_bytes < -1:
        raise ConfigError(f"{LOG_DIR_RESERVE_BYTES} is {reserve_bytes}, but it is a number of bytes, or -1.")
    return reserve_bytes


def _at_least(values: PropertyValues, key: str, least: int) -> int:
    value = values.integer(key)
    if value < least:
        raise ConfigError(f"{key} is {value}, but it is at least {least}.")
    return value


def _move_threads(values: PropertyValues, directory_count: int) -> int:
    key = "num.replica.alter.log.dirs.threads"
    return _at_least(values, key, 1) if values.is_set(key) else directory_count


def _log_level(values: PropertyValues) -> int:
    name = values.text_or_none(LOG_LEVEL) or ""
    level = LOG_LEVELS.get(name.strip().upper())
    if level is None:
        raise ConfigError(f"{LOG_LEVEL} is {name!r}, but it is one of {', '.join(LOG_LEVELS)}.")
    return level


def _connection_overrides(values: PropertyValues) -> Mapping[str, int]:
    key = "max.connections.per.ip.overrides"
    overrides = {}
    for entry in filter(None, (entry.strip() for entry in (values.text_or_none(key) or "").split(","))):
        host, colon, limit = entry.rpartition(":")
        if not colon or not limit.strip().isdecimal():
            raise ConfigError(f"{key} holds address:number, but one entry is {entry!r}.")
        overrides[host.strip()] = int(limit)
    if not overrides and values.integer("max.connections.per.ip") == 0:
        raise ConfigError(f"max.connections.per.ip can be 0 only when {key} is set.")
    return MappingProxyType(overrides)


def _voters(values: PropertyValues) -> Mapping[NodeId, Voter]:
    """The voters. A controller without `controller.quorum.voters` votes alone, and other nodes cannot find it."""
    voters = parse_voters(values.strings("controller.quorum.voters"))
    return voters or {_node_id(values): Voter(_node_id(values), "", 0)}


def _check_roles(values: PropertyValues, config: NodeConfig) -> None:
    named = ", ".join(map(str, config.voters.values()))
    is_named = values.is_set("controller.quorum.voters")
    if config.is_controller and config.node_id not in config.voters:
        raise ConfigError(f"Node {config.node_id} is a controller, but controller.quorum.voters names only {named}.")
    if config.is_controller and len(config.voters) > 1 and not config.controller_listeners:
        raise ConfigError("listeners must name one of controller.listener.names: other voters reach this one there.")
    if not config.is_controller and (not is_named or config.node_id in config.voters):
        raise ConfigError(
            f"Node {config.node_id} is no controller, so controller.quorum.voters must name others that are."
        )
    if not config.is_broker and not config.controller_listeners:
        raise ConfigError("listeners must name one of controller.listener.names: a controller is reached there.")
    has_proof = bool(config.cluster_secret) or config.node_certificates is not None
    is_alone = config.is_controller and config.is_broker and len(config.voters) == 1
    if not has_proof and not is_alone:
        raise ConfigError(
            f"{CLUSTER_SECRET} or {CLUSTER_CERTIFICATE_NAME} must be set, or a sasl.jaas.config with the user and "
            "password of nodes on a listener where they reach each other: nodes prove with it to each other that they "
            "are of one cluster."
        )
    servers = values.strings("controller.quorum.bootstrap.servers")
    if len(servers) > 1:
        raise ConfigError(
            f"controller.quorum.bootstrap.servers is {','.join(servers)}, but voters are named in "
            "controller.quorum.voters here."
        )


def _check_node_certificates(config: NodeConfig) -> None:
    if config.node_certificates is None:
        return
    # A controller asks brokers for what its HTTP administration tells, and nothing else depends on it.
    inter_broker_name = config.inter_broker_listener_name if config.is_broker else ""
    for name in filter(None, (config.controller_listener_name, inter_broker_name)):
        is_served = any(listener.name == name for listener in (*config.listeners, *config.controller_listeners))
        check_node_certificates(name, config.tls.get(name), is_served=is_served)


def _check_limits(config: NodeConfig) -> None:
    # Both are Kafka's rules: else followers of a quiet partition come and go, or every wait ends in a timeout.
    if config.replica_fetch_wait_max_ms > config.replica_lag_time_max_ms:
        raise ConfigError(
            f"replica.fetch.wait.max.ms ({config.replica_fetch_wait_max_ms}) must not be more than "
            f"replica.lag.time.max.ms ({config.replica_lag_time_max_ms})."
        )
    if config.replica_fetch_wait_max_ms > config.replica_socket_timeout_ms:
        raise ConfigError(
            f"replica.fetch.wait.max.ms ({config.replica_fetch_wait_max_ms}) must not be more than "
            f"replica.socket.timeout.ms ({config.replica_socket_timeout_ms})."
        )
    if 0 <= config.connections_max_idle_ms <= config.failed_authentication_delay_ms:
        raise ConfigError(
            f"connection.failed.authentication.delay.ms ({config.failed_authentication_delay_ms}) must be less than "
            f"connections.max.idle.ms ({config.connections_max_idle_ms})."
        )
    if config.broker_heartbeat_interval_ms >= config.broker_session_timeout_ms:
        raise ConfigError(
            f"broker.heartbeat.interval.ms ({config.broker_heartbeat_interval_ms}) must be less than "
            f"broker.session.timeout.ms ({config.broker_session_timeout_ms})."
        )


def _with_warnings(config: NodeConfig, values: PropertyValues) -> NodeConfig:
    topic_defaults = {synonym.name for key in topic_configs().values() for synonym in key.synonyms}
    without_effect = sorted(
        name
        for name in values.properties
        # Those of groups are defaults and bounds of what a group may configure for itself.
        if name not in values.used | topic_defaults | METRICS_KEYS
        and not name.startswith(("config.providers", "group.consumer.", "rlmm.config.remote.log.metadata.topic."))
    )
    warnings = []
    if without_effect:
        warnings.append(f"These properties have no effect here: {', '.join(without_effect)}.")
    wide = [
        str(listener)
        for listener in (*config.listeners, *config.controller_listeners)
        if not listener.is_loopback
        and listener.name not in config.sasl
        and (listener.name not in config.tls or config.tls[listener.name].client_auth != "required")
    ]
    if wide and config.authorizer is None:
        warnings.append(
            f"Anyone who reaches {', '.join(wide)} can read and write everything: neither a certificate nor SASL is "
            "required there."
        )
    return dataclasses.replace(config, warnings=tuple(warnings))
