"""What a node is told at start, and what it refuses."""

import logging
from pathlib import Path

import pytest

from penstock.broker.configuration.listener_config import ListenerConfig
from penstock.broker.configuration.node_config import NodeConfig, load
from penstock.protocol.errors import ConfigError
from penstock.protocol.properties_text import properties_of

STOCK = properties_of(Path(__file__).with_name("server.properties").read_text())


def test_without_any_property_a_node_has_all_roles_and_is_seen_from_this_machine_only() -> None:
    config = load({})
    assert config.process_roles == ("broker", "controller")
    assert config.listeners == (ListenerConfig(name="PLAINTEXT", host="127.0.0.1", port=9092),)
    assert config.advertised_listeners == config.listeners
    assert config.log_dirs == ("penstock-data",)
    assert config.metadata_log_dir == "penstock-data"
    assert not config.warnings


def test_a_stock_server_properties_of_kafka_starts_a_node() -> None:
    config = load(STOCK)
    assert [str(one) for one in config.listeners] == ["PLAINTEXT://:9092"]
    assert [str(one) for one in config.controller_listeners] == ["CONTROLLER://:9093"]
    assert [str(one) for one in config.advertised_listeners] == ["PLAINTEXT://localhost:9092"]
    assert config.log_dirs == ("/tmp/kraft-combined-logs",)
    assert config.inter_broker_listener_name == "PLAINTEXT"


@pytest.mark.parametrize(("set_to", "thread_count"), [({}, 3), ({"num.replica.alter.log.dirs.threads": "1"}, 1)])
def test_as_many_logs_move_at_a_time_as_there_are_directories_unless_told_otherwise(
    set_to: dict[str, str], thread_count: int
) -> None:
    config = load({"log.dirs": "/a,/b,/c", **set_to})
    assert config.num_replica_alter_log_dirs_threads == thread_count
    assert not config.warnings


def test_keys_without_meaning_here_are_named_in_one_warning() -> None:
    warnings = [warning for warning in load(STOCK).warnings if "no effect" in warning]
    assert len(warnings) == 1
    assert "num.io.threads" in warnings[0]
    assert "log.retention.hours" not in warnings[0]
    assert "log.dirs" not in warnings[0]


@pytest.mark.parametrize(
    ("key", "has_effect"),
    [
        ("group.consumer.session.timeout.ms", True),
        ("group.consumer.min.session.timeout.ms", True),
        ("group.share.session.timeout.ms", False),
    ],
)
def test_properties_of_consumer_groups_have_an_effect(key: str, *, has_effect: bool) -> None:
    config = load({**STOCK, key: "45000"})
    assert any(key in warning for warning in config.warnings) is not has_effect


def test_rebalance_protocols_enable_consumer_groups_and_cannot_leave_out_the_classic_protocol() -> None:
    key = "group.coordinator.rebalance.protocols"
    assert load(STOCK).groups.consumer.is_enabled
    config = load({**STOCK, key: "classic"})
    assert not config.groups.consumer.is_enabled
    assert not any(key in warning for warning in config.warnings)
    with pytest.raises(ConfigError, match="disabling the 'classic' protocol is not supported"):
        load({**STOCK, key: "consumer"})


@pytest.mark.parametrize(
    ("listeners", "is_wide"),
    [
        ("PLAINTEXT://:9092", True),
        ("PLAINTEXT://0.0.0.0:9092", True),
        ("PLAINTEXT://example.org:9092", True),
        ("PLAINTEXT://localhost:9092", False),
        ("PLAINTEXT://127.8.8.8:9092", False),
        ("PLAINTEXT://[::1]:9092", False),
    ],
)
def test_a_listener_that_others_can_reach_is_warned_of(listeners: str, is_wide: bool) -> None:
    warnings = load({"listeners": listeners}).warnings
    assert [("can read and write everything" in warning) for warning in warnings] == ([True] if is_wide else [])


@pytest.mark.parametrize(
    ("properties", "sentence"),
    [
        ({"num.partition": "1"}, "num.partition is not a property of Apache Kafka 4.3.1; did you mean num.partitions?"),
        ({"zookeeper.connect": ""}, "zookeeper.connect is not a property of Apache Kafka 4.3.1."),
        ({"num.partitions": "x"}, "Invalid value x for configuration num.partitions: Not a number of type INT"),
        ({"node.id": "-1"}, "Invalid value -1 for configuration node.id: Value must be at least 0"),
        (
            {"num.replica.alter.log.dirs.threads": "0"},
            "num.replica.alter.log.dirs.threads is 0, but it is at least 1.",
        ),
        ({"node.id": "1", "broker.id": "2"}, "node.id is 1, but broker.id is 2: set them to the same value."),
        (
            {"process.roles": "broker"},
            "Node 1 is no controller, so controller.quorum.voters must name others that are.",
        ),
        (
            {"process.roles": "broker", "controller.quorum.voters": "2@a:1"},
            "cluster.secret or cluster.certificate.name must be set, or a sasl.jaas.config with the user and password "
            "of nodes on a listener where they reach each other: nodes prove with it to each other that they are of "
            "one cluster.",
        ),
        (
            # Brokers could log in among themselves, but it knows no user and password of theirs.
            {"process.roles": "controller", "listeners": "CONTROLLER://127.0.0.1:1"},
            "cluster.secret or cluster.certificate.name must be set, or a sasl.jaas.config with the user and password "
            "of nodes on a listener where they reach each other: nodes prove with it to each other that they are of "
            "one cluster.",
        ),
        (
            {"process.roles": "controller"},
            "listeners must name one of controller.listener.names: a controller is reached there.",
        ),
        (
            {"process.roles": "brother"},
            "Invalid value brother for configuration process.roles: String must be one of: broker, controller",
        ),
        (
            {"controller.quorum.voters": "1@a:1,2@b:1"},
            "listeners must name one of controller.listener.names: other voters reach this one there.",
        ),
        (
            {"controller.quorum.voters": "2@a:1"},
            "Node 1 is a controller, but controller.quorum.voters names only 2@a:1.",
        ),
        (
            {"controller.quorum.bootstrap.servers": "a:1,b:1"},
            "controller.quorum.bootstrap.servers is a:1,b:1, but voters are named in controller.quorum.voters here.",
        ),
        (
            {"authorizer.class.name": "com.example.Authorizer"},
            "authorizer.class.name is com.example.Authorizer, but can only be "
            "org.apache.kafka.metadata.authorizer.StandardAuthorizer: no other class can be loaded here.",
        ),
        (
            {"super.users": "User:a"},
            "super.users is set, but authorizer.class.name is not: everyone may do everything then.",
        ),
        (
            {
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": "User:a,b;admin",
            },
            "super.users has 'admin', but expected are principals as type:name, with semicolons between them.",
        ),
        (
            {"listeners": "PUBLIC://:1"},
            "Listener PUBLIC of listeners has no security protocol: add it to listener.security.protocol.map.",
        ),
        (
            {"listeners": "localhost:9092"},
            "listeners must hold listeners like PLAINTEXT://host:9092, but one is 'localhost:9092'.",
        ),
        (
            {"listeners": "PLAINTEXT://a:70000"},
            "listeners holds PLAINTEXT://a:70000, whose port is not between 0 and 65535.",
        ),
        (
            {"listeners": "PLAINTEXT://a:1,PLAINTEXT://a:2"},
            "Each listener of listeners must have a different name, but it is PLAINTEXT://a:1,PLAINTEXT://a:2.",
        ),
        (
            {
                "listeners": "PLAINTEXT://a:1,B://a:1",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,B:PLAINTEXT",
            },
            "Each listener of listeners must have a different port, but PLAINTEXT://a:1 and B://a:1 share one.",
        ),
        (
            {"listeners": "CONTROLLER://a:1"},
            "listeners must name at least one listener that is not in controller.listener.names.",
        ),
        (
            {"advertised.listeners": "PLAINTEXT://0.0.0.0:1"},
            "advertised.listeners must hold addresses that clients can reach, but one is PLAINTEXT://0.0.0.0:1.",
        ),
        ({"advertised.listeners": "SSL://a:1"}, "advertised.listeners names SSL, which listeners does not."),
        (
            {"inter.broker.listener.name": "B"},
            "inter.broker.listener.name is B, which advertised.listeners does not name.",
        ),
        (
            {"inter.broker.listener.name": "PLAINTEXT", "security.inter.broker.protocol": "PLAINTEXT"},
            "Only one of inter.broker.listener.name and security.inter.broker.protocol may be set.",
        ),
        (
            {"queued.max.request.bytes": "10"},
            "queued.max.request.bytes is 10, but one request may have 104857600 (socket.request.max.bytes).",
        ),
        (
            {"max.connections.per.ip": "0"},
            "max.connections.per.ip can be 0 only when max.connections.per.ip.overrides is set.",
        ),
        (
            {"broker.heartbeat.interval.ms": "9000"},
            "broker.heartbeat.interval.ms (9000) must be less than broker.session.timeout.ms (9000).",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(properties: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(properties)
    assert str(refused.value) == sentence


def test_keys_of_plugins_and_of_single_listeners_are_accepted() -> None:
    assert load({"listener.name.plaintext.ssl.key.password": "x", "rsm.config.bucket": "b"}).node_id == 1


def test_memory_for_unfinished_requests_is_bounded_even_where_kafka_has_no_bound() -> None:
    assert load({}).queued_max_request_bytes == 256 * 1024 * 1024
    assert load({"queued.max.request.bytes": "200000000"}).queued_max_request_bytes == 200_000_000


def advertised(config: NodeConfig) -> list[str]:
    return [str(listener) for listener in config.advertise("here.example", {"PLAINTEXT": 4711})]


def test_clients_are_told_complete_addresses() -> None:
    assert advertised(load({"listeners": "PLAINTEXT://:0"})) == ["PLAINTEXT://here.example:4711"]
    assert advertised(load({"listeners": "PLAINTEXT://0.0.0.0:9"})) == ["PLAINTEXT://here.example:9"]
    assert advertised(load({"listeners": "PLAINTEXT://[::1]:9"})) == ["PLAINTEXT://[::1]:9"]
    told = load({"listeners": "PLAINTEXT://:0", "advertised.listeners": "PLAINTEXT://proxy:1"})
    assert advertised(told) == ["PLAINTEXT://proxy:1"]


def test_several_listeners_have_names_and_addresses_of_their_own() -> None:
    config = load(
        {
            "listeners": "internal://127.0.0.1:1,EXTERNAL://127.0.0.1:2",
            "advertised.listeners": "INTERNAL://127.0.0.1:1,EXTERNAL://proxy:3",
            "listener.security.protocol.map": "INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT",
            "inter.broker.listener.name": "INTERNAL",
        }
    )
    assert [listener.name for listener in config.listeners] == ["INTERNAL", "EXTERNAL"]
    assert config.inter_broker_listener_name == "INTERNAL"


@pytest.mark.parametrize(
    ("properties", "name"),
    [
        ({}, "PLAINTEXT"),
        ({"inter.broker.listener.name": "internal"}, "INTERNAL"),
        ({"security.inter.broker.protocol": "SSL"}, "SSL"),
    ],
)
def test_a_controller_knows_the_listener_where_it_asks_brokers(properties: dict[str, str], name: str) -> None:
    controller = {
        "process.roles": "controller",
        "listeners": "CONTROLLER://127.0.0.1:1",
        "cluster.secret": "of the nodes",
        "controller.quorum.voters": "1@127.0.0.1:1",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "/authority.pem",
    }
    config = load({**controller, **properties})
    assert config.inter_broker_listener_name == name
    assert (name in config.tls) == (name == "SSL")


def test_connection_limits_of_single_hosts_are_read() -> None:
    config = load({"max.connections.per.ip.overrides": "127.0.0.1:3, ::1:4", "max.connections.per.ip": "0"})
    assert config.max_connections_per_ip_overrides == {"127.0.0.1": 3, "::1": 4}


def test_log_level_has_kafkas_names() -> None:
    assert load({}).log_level == logging.INFO
    assert load({"log.level": "warn"}).log_level == logging.WARNING
    with pytest.raises(ConfigError, match=r"log\.level is 'LOUD', but it is one of FATAL, ERROR, WARN, INFO, DEBUG"):
        load({"log.level": "LOUD"})


def test_reserve_of_a_disk_is_a_number_of_bytes_or_left_to_its_size() -> None:
    assert load({}).log_dir_reserve_bytes == -1
    config = load({"log.dir.reserve.bytes": "0"})
    assert config.log_dir_reserve_bytes == 0
    assert config.warnings == ()
    with pytest.raises(ConfigError, match="is -2, but it is a number of bytes, or -1"):
        load({"log.dir.reserve.bytes": "-2"})
    with pytest.raises(ConfigError, match="Invalid value much for configuration"):
        load({"log.dir.reserve.bytes": "much"})


def test_what_is_created_automatically_follows_the_controller_where_this_node_was_told_nothing() -> None:
    config = load({"num.partitions": "5"})
    assert (config.auto_create_partition_count, config.auto_create_replication_factor) == (5, -1)
    config = load({"default.replication.factor": "1"})
    assert (config.auto_create_partition_count, config.auto_create_replication_factor) == (-1, 1)


def test_replicas_are_selected_by_one_of_kafkas_own_classes() -> None:
    assert not load({}).is_closest_replica_read
    key, package = "replica.selector.class", "org.apache.kafka.common.replica"
    config = load({key: f"{package}.RackAwareReplicaSelector"})
    assert config.is_closest_replica_read
    assert config.warnings == ()
    assert not load({key: f"{package}.LeaderSelector"}).is_closest_replica_read
    with pytest.raises(
        ConfigError, match=r"is com\.example\.Mine, but can only be .*: no other class can be loaded here"
    ):
        load({key: "com.example.Mine"})


@pytest.mark.parametrize(
    ("properties", "fetch_ms", "request_ms", "wait_ms"),
    [
        ({}, 2_000, 2_000, 500),
        ({"controller.quorum.fetch.timeout.ms": "800"}, 800, 2_000, 200),
        ({"controller.quorum.request.timeout.ms": "700"}, 2_000, 700, 500),
        # Longer than what a session allows, and 0, which Kafka allows.
        ({"controller.quorum.fetch.timeout.ms": "60000"}, 2_250, 2_000, 500),
        ({"controller.quorum.request.timeout.ms": "0"}, 2_000, 100, 500),
        ({"broker.session.timeout.ms": "4400"}, 1_100, 1_100, 275),
        ({"broker.session.timeout.ms": "1500", "broker.heartbeat.interval.ms": "375"}, 1_000, 1_000, 250),
    ],
)
def test_a_silent_voter_is_left_well_within_a_session(
    properties: dict[str, str], fetch_ms: int, request_ms: int, wait_ms: int
) -> None:
    times = load(properties).quorum_times
    assert (times.fetch_timeout_ms, times.request_timeout_ms) == (fetch_ms, request_ms)
    assert times.fetch_wait_ms == wait_ms


@pytest.mark.parametrize("key", ["metrics.per.partition", "metrics.kafka.exporter"])
def test_keys_of_metrics_are_not_said_to_have_no_effect(key: str) -> None:
    assert not load({key: "true"}).warnings
