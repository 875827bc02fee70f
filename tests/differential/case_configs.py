"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources: keys with values, sources and texts."""

from __future__ import annotations

from typing import Any

from differential.script import Run, case

from penstock.protocol.apis import ApiKey

UNKNOWN, TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 0, 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


def resource(kind: int, name: str, **rest: Any) -> dict[str, Any]:
    return {"resource_type": kind, "resource_name": name, **rest}


def describe(run: Run, step: str, *resources: dict[str, Any], synonyms: bool = True, texts: bool = True) -> None:
    wanted = [{"configuration_keys": None, **one} for one in resources]
    run.ask(step, ApiKey.DESCRIBE_CONFIGS, resources=wanted, include_synonyms=synonyms, include_documentation=texts)


@case(ApiKey.DESCRIBE_CONFIGS)
def describe_topic_configs(run: Run) -> None:
    plain = run.create("plain")
    changed = run.create("changed", retention_ms=1234, cleanup_policy="compact", compression_type="lz4")
    for synonyms in (True, False):
        for texts in (True, False):
            describe(run, f"all, {synonyms} {texts}", resource(TOPIC, plain), synonyms=synonyms, texts=texts)
    describe(run, "changed", resource(TOPIC, changed))
    describe(run, "some keys", resource(TOPIC, changed, configuration_keys=["retention.ms", "segment.bytes"]))
    describe(run, "unknown key", resource(TOPIC, changed, configuration_keys=["retention.ms", "no.such.key"]))
    describe(run, "no keys", resource(TOPIC, changed, configuration_keys=[]))
    describe(run, "key twice", resource(TOPIC, changed, configuration_keys=["retention.ms", "retention.ms"]))
    describe(run, "two", resource(TOPIC, plain), resource(TOPIC, changed))
    describe(run, "twice", resource(TOPIC, plain), resource(TOPIC, plain))
    describe(run, "unknown", resource(TOPIC, run.name("unknown")))
    describe(run, "empty name", resource(TOPIC, ""))
    describe(run, "invalid name", resource(TOPIC, "a b"))
    describe(run, "internal", resource(TOPIC, "__cluster_metadata"))
    run.ask("nothing", resources=[])


@case(ApiKey.DESCRIBE_CONFIGS)
def describe_broker_configs(run: Run) -> None:
    describe(run, "the broker", resource(BROKER, "1"))
    describe(run, "the default", resource(BROKER, ""))
    keys = ["log.retention.ms", "log.retention.hours", "min.insync.replicas", "ssl.keystore.password", "node.id"]
    describe(run, "some keys", resource(BROKER, "1", configuration_keys=keys))
    describe(run, "some keys of the default", resource(BROKER, "", configuration_keys=keys))
    for name in ("2", "-1", "x", "1.5", "99999999999"):
        describe(run, f"broker {name}", resource(BROKER, name))
    # Of all loggers there are as many as were needed yet.
    for name in ("", "1", "2", "x"):
        describe(run, f"loggers of {name}", resource(BROKER_LOGGER, name, configuration_keys=["root"]))


@case(ApiKey.DESCRIBE_CONFIGS)
def describe_other_configs(run: Run) -> None:
    describe(run, "client metrics", resource(CLIENT_METRICS, "nobody"))
    describe(run, "client metrics without a name", resource(CLIENT_METRICS, ""))
    describe(run, "group", resource(GROUP, "nobody"))
    describe(run, "group without a name", resource(GROUP, ""))
    for kind in (UNKNOWN, 1, 3, 64, -1):
        describe(run, f"kind {kind}", resource(kind, "x"))


def alter(run: Run, step: str, key: ApiKey, *resources: dict[str, Any], validate_only: bool = False) -> None:
    run.ask(step, key, resources=list(resources), validate_only=validate_only)


def changes(*wanted: tuple[int, str, str | None]) -> list[dict[str, Any]]:
    return [{"config_operation": operation, "name": name, "value": value} for operation, name, value in wanted]


def wait_for_config(run: Run, name: str, key: str, value: str | None, kind: int = TOPIC) -> None:
    def has_value() -> bool:
        asked = [resource(kind, name, configuration_keys=[key])]
        (found,) = run.quiet(ApiKey.DESCRIBE_CONFIGS, resources=asked)["results"]
        return all(one["value"] == value for one in found["configs"]) and (value is None or bool(found["configs"]))

    run.wait_for(has_value)


@case(ApiKey.INCREMENTAL_ALTER_CONFIGS)
def incremental_alter_topic_configs(run: Run) -> None:
    name = run.create("altered")

    def change(step: str, *wanted: tuple[int, str, str | None], topic: str = name, validate_only: bool = False) -> None:
        given = resource(TOPIC, topic, configs=changes(*wanted))
        alter(run, step, ApiKey.INCREMENTAL_ALTER_CONFIGS, given, validate_only=validate_only)

    change("validated", (SET, "retention.ms", "5"), validate_only=True)
    change("set", (SET, "retention.ms", "1234"), (SET, "max.message.bytes", "5000"))
    wait_for_config(run, name, "retention.ms", "1234")
    describe(run, "set, described", resource(TOPIC, name))
    change("append", (APPEND, "cleanup.policy", "compact"))
    wait_for_config(run, name, "cleanup.policy", "delete,compact")
    change("append what is there", (APPEND, "cleanup.policy", "compact"))
    change("subtract", (SUBTRACT, "cleanup.policy", "delete"))
    wait_for_config(run, name, "cleanup.policy", "compact")
    change("subtract what is not there", (SUBTRACT, "cleanup.policy", "delete"))
    change("delete", (DELETE, "retention.ms", None), (DELETE, "cleanup.policy", "ignored"))
    wait_for_config(run, name, "retention.ms", "604800000")
    change("delete what is not set", (DELETE, "retention.ms", None))
    describe(run, "at the end", resource(TOPIC, name))
    change("append to no list", (APPEND, "retention.ms", "5"))
    change("subtract from no list", (SUBTRACT, "retention.ms", "5"))
    change("append nothing", (APPEND, "cleanup.policy", ""))
    change("append null", (APPEND, "cleanup.policy", None))
    change("append an invalid item", (APPEND, "cleanup.policy", "shred"))
    change("set null", (SET, "retention.ms", None))
    change("set nothing", (SET, "retention.ms", ""))
    change("set an invalid value", (SET, "retention.ms", "abc"))
    change("set an unknown key", (SET, "no.such.key", "1"))
    change("delete an unknown key", (DELETE, "no.such.key", None))
    change("empty key", (SET, "", "1"))
    change("key twice", (SET, "retention.ms", "1"), (SET, "retention.ms", "2"))
    change("key in two operations", (SET, "retention.ms", "1"), (DELETE, "retention.ms", None))
    change("one good, one bad", (SET, "retention.ms", "77"), (SET, "segment.ms", "-5"))
    change("unknown operation", (9, "retention.ms", "77"))
    change("negative operation", (-1, "retention.ms", "77"))
    change("unknown topic", (SET, "retention.ms", "77"), topic=run.name("unknown"))
    change("empty name", (SET, "retention.ms", "77"), topic="")
    change("nothing to change")
    alter(run, "nothing", ApiKey.INCREMENTAL_ALTER_CONFIGS)
    two = [resource(TOPIC, one, configs=changes((SET, "retention.ms", "9"))) for one in (name, run.name("unknown"))]
    alter(run, "two, one of them unknown", ApiKey.INCREMENTAL_ALTER_CONFIGS, *two)
    wait_for_config(run, name, "retention.ms", "9")
    both = [resource(TOPIC, name, configs=changes((SET, "retention.ms", "9")))] * 2
    alter(run, "resource twice", ApiKey.INCREMENTAL_ALTER_CONFIGS, *both)
    for kind in (UNKNOWN, 1, 64):
        given = resource(kind, "x", configs=changes((SET, "retention.ms", "9")))
        alter(run, f"kind {kind}", ApiKey.INCREMENTAL_ALTER_CONFIGS, given)


BROKER_VALUES: tuple[tuple[int, str, str | None], ...] = (
    (SET, "log.retention.ms", "abc"),
    (SET, "log.retention.ms", "-2"),
    (SET, "node.id", "5"),
    (SET, "no.such.key", "5"),
    (SET, "num.io.threads", "0"),
    (SET, "num.io.threads", "1000"),
    (SET, "num.io.threads", "17"),
    (SET, "num.io.threads", "16"),
    (SET, "num.io.threads", "4"),
    (SET, "num.io.threads", "3"),
    (SET, "num.network.threads", "7"),
    (SET, "num.replica.fetchers", "3"),
    (SET, "num.recovery.threads.per.data.dir", "9"),
    (SET, "background.threads", "1"),
    (SET, "log.cleaner.threads", "3"),
    (SET, "log.cleaner.threads", "-1"),
    (SET, "message.max.bytes", "-1"),
    (SET, "max.connections", "-1"),
    (SET, "compression.type", "brotli"),
    (SET, "log.message.timestamp.type", "Never"),
    (SET, "process.roles", "broker"),
    (SET, "log.dirs", "elsewhere"),
    (SET, "log.cleanup.policy", "shred"),
    (APPEND, "log.cleanup.policy", "compact"),
    (APPEND, "log.retention.ms", "5"),
    (SET, "min.insync.replicas", "0"),
    (SET, "leader.replication.throttled.rate", "-1"),
    (DELETE, "node.id", None),
    (DELETE, "no.such.key", None),
    (SET, "advertised.listeners", "PLAINTEXT://elsewhere:1"),
    (SET, "ssl.keystore.location", "nowhere"),
    (SET, "unclean.leader.election.enable", "x"),
    (SET, "auto.create.topics.enable", "false"),
)


@case(ApiKey.INCREMENTAL_ALTER_CONFIGS)
def incremental_alter_broker_configs(run: Run) -> None:
    for broker in ("1", ""):
        for change in BROKER_VALUES:
            given = resource(BROKER, broker, configs=changes(change))
            step = f"of {broker or 'all'}: {change}"
            alter(run, step, ApiKey.INCREMENTAL_ALTER_CONFIGS, given, validate_only=True)
        set_ = changes((SET, "log.retention.ms", "2592000000"), (SET, "message.max.bytes", "2000000"))
        alter(
            run, f"set of {broker or 'all'}", ApiKey.INCREMENTAL_ALTER_CONFIGS, resource(BROKER, broker, configs=set_)
        )
        wait_for_config(run, broker, "log.retention.ms", "2592000000", BROKER)
    describe(run, "of the broker", resource(BROKER, "1", configuration_keys=["log.retention.ms", "message.max.bytes"]))
    describe(run, "of all", resource(BROKER, ""))
    name = run.create("under")
    keys = ["retention.ms", "max.message.bytes", "segment.bytes"]
    describe(run, "of a topic under them", resource(TOPIC, name, configuration_keys=keys))
    wanted = {"name": run.name("made"), "num_partitions": 1, "replication_factor": 1}
    run.ask("a topic made under them", ApiKey.CREATE_TOPICS, topics=[wanted], timeout=10_000)
    for broker in ("1", ""):
        unset = changes((DELETE, "log.retention.ms", None), (DELETE, "message.max.bytes", None))
        given = resource(BROKER, broker, configs=unset)
        alter(run, f"unset of {broker or 'all'}", ApiKey.INCREMENTAL_ALTER_CONFIGS, given)
    wait_for_config(run, "1", "log.retention.ms", None, BROKER)
    describe(run, "of the broker, unset", resource(BROKER, "1", configuration_keys=["log.retention.ms"]))
    for broker in ("2", "-1", "x"):
        given = resource(BROKER, broker, configs=changes((SET, "log.retention.ms", "5")))
        alter(run, f"broker {broker}", ApiKey.INCREMENTAL_ALTER_CONFIGS, given, validate_only=True)


@case(ApiKey.INCREMENTAL_ALTER_CONFIGS)
def incremental_alter_other_configs(run: Run) -> None:
    metrics, group = run.name("metrics"), run.name("group")
    other = ApiKey.INCREMENTAL_ALTER_CONFIGS
    for key, value in (
        ("interval.ms", "1000"),
        ("interval.ms", "99"),
        ("interval.ms", "x"),
        ("metrics", "org.apache.kafka.producer."),
        ("match", "client_id=a.*"),
        ("match", "no such thing"),
        ("match", "unknown=x"),
        ("no.such.key", "1"),
    ):
        given = resource(CLIENT_METRICS, metrics, configs=changes((SET, key, value)))
        alter(run, f"metrics {key} {value}", other, given, validate_only=True)
    for key, value in (
        ("consumer.session.timeout.ms", "50000"),
        ("consumer.session.timeout.ms", "1"),
        ("consumer.heartbeat.interval.ms", "6000"),
        ("share.auto.offset.reset", "earliest"),
        ("share.auto.offset.reset", "x"),
        ("no.such.key", "1"),
    ):
        given = resource(GROUP, group, configs=changes((SET, key, value)))
        alter(run, f"group {key} {value}", other, given, validate_only=True)
    alter(run, "metrics", other, resource(CLIENT_METRICS, metrics, configs=changes((SET, "interval.ms", "1000"))))
    wait_for_config(run, metrics, "interval.ms", "1000", CLIENT_METRICS)
    describe(run, "metrics, described", resource(CLIENT_METRICS, metrics))
    given = resource(GROUP, group, configs=changes((SET, "consumer.session.timeout.ms", "50000")))
    alter(run, "group", other, given)
    wait_for_config(run, group, "consumer.session.timeout.ms", "50000", GROUP)
    describe(run, "group, described", resource(GROUP, group))
    given = resource(GROUP, group, configs=changes((DELETE, "consumer.session.timeout.ms", None)))
    alter(run, "group, deleted", other, given)
    for name in ("", "2", "x"):
        given = resource(BROKER_LOGGER, name, configs=changes((SET, "no.such.logger", "INFO")))
        alter(run, f"loggers of {name}", other, given, validate_only=True)
    alter(
        run,
        "metrics without a name",
        other,
        resource(CLIENT_METRICS, "", configs=changes((SET, "interval.ms", "1000"))),
    )
    alter(run, "group without a name", other, resource(GROUP, "", configs=changes((DELETE, "x", None))))


@case(ApiKey.ALTER_CONFIGS)
def alter_configs(run: Run) -> None:
    name = run.create("altered", retention_ms=5, segment_bytes=2_000_000)

    def change(step: str, *wanted: tuple[str, str | None], topic: str = name, validate_only: bool = False) -> None:
        configs = [{"name": key, "value": value} for key, value in wanted]
        alter(run, step, ApiKey.ALTER_CONFIGS, resource(TOPIC, topic, configs=configs), validate_only=validate_only)

    change("validated", ("retention.ms", "6"), validate_only=True)
    change("all", ("retention.ms", "7"))
    wait_for_config(run, name, "segment.bytes", "1073741824")
    describe(run, "described", resource(TOPIC, name))
    change("null", ("retention.ms", None))
    change("invalid", ("retention.ms", "x"))
    change("unknown key", ("no.such.key", "1"))
    change("key twice", ("retention.ms", "8"), ("retention.ms", "9"))
    change("unknown topic", ("retention.ms", "8"), topic=run.name("unknown"))
    change("empty name", ("retention.ms", "8"), topic="")
    change("nothing to set")
    wait_for_config(run, name, "retention.ms", "604800000")
    alter(run, "nothing", ApiKey.ALTER_CONFIGS)
    for kind in (UNKNOWN, 1, 64):
        given = resource(kind, "x", configs=[{"name": "retention.ms", "value": "8"}])
        alter(run, f"kind {kind}", ApiKey.ALTER_CONFIGS, given)
    for broker in ("1", "", "2", "x"):
        given = resource(BROKER, broker, configs=[{"name": "log.retention.ms", "value": "100000"}])
        alter(run, f"broker {broker}", ApiKey.ALTER_CONFIGS, given, validate_only=True)
    given = resource(BROKER, "1", configs=[{"name": "node.id", "value": "8"}])
    alter(run, "read-only key of a broker", ApiKey.ALTER_CONFIGS, given, validate_only=True)
    for kind, key in ((CLIENT_METRICS, "interval.ms"), (GROUP, "consumer.session.timeout.ms")):
        given = resource(kind, run.name("other"), configs=[{"name": key, "value": "50000"}])
        alter(run, f"kind {kind}", ApiKey.ALTER_CONFIGS, given, validate_only=True)
    given = resource(BROKER_LOGGER, "1", configs=[{"name": "no.such.logger", "value": "INFO"}])
    alter(run, "loggers", ApiKey.ALTER_CONFIGS, given, validate_only=True)


@case(ApiKey.LIST_CONFIG_RESOURCES)
def list_config_resources(run: Run) -> None:
    run.create("one")
    given = resource(CLIENT_METRICS, run.name("metrics"), configs=changes((SET, "interval.ms", "1000")))
    run.quiet(ApiKey.INCREMENTAL_ALTER_CONFIGS, resources=[given])
    given = resource(GROUP, run.name("group"), configs=changes((SET, "consumer.session.timeout.ms", "50000")))
    run.quiet(ApiKey.INCREMENTAL_ALTER_CONFIGS, resources=[given])
    wait_for_config(run, run.name("group"), "consumer.session.timeout.ms", "50000", GROUP)
    run.ask("all", resource_types=[], only_own=True)
    for kind in (UNKNOWN, 1, TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, 64, -1) if run.version else ():
        run.ask(f"kind {kind}", resource_types=[kind], only_own=kind not in (BROKER, BROKER_LOGGER))
    if run.version:
        run.ask("two kinds", resource_types=[TOPIC, CLIENT_METRICS], only_own=True)
        run.ask("a kind twice", resource_types=[TOPIC, TOPIC], only_own=True)
        run.ask("a kind and none", resource_types=[TOPIC, 99], only_own=True)
