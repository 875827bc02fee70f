"""Configs of topics, brokers, clients, users and metrics subscriptions; ACLs."""

from __future__ import annotations

from .tools import Tools, require


def configs_topic(tools: Tools) -> None:
    topic = tools.new_topic()
    entity = ("--entity-type", "topics", "--entity-name", topic)
    tools("configs", "--alter", *entity, "--add-config", "max.message.bytes=1234,cleanup.policy=[compact,delete]")
    described = tools("configs", "--describe", *entity)
    require("max.message.bytes=1234" in described, "max.message.bytes was not set", described)
    require("cleanup.policy=compact,delete" in described, "cleanup.policy was not set", described)
    tools("configs", "--alter", *entity, "--delete-config", "cleanup.policy")
    refused = tools("console-producer", "--topic", topic, stdin="k" * 3000 + "\n", check=False)
    require("RecordTooLarge" in refused or "larger than" in refused, "max.message.bytes is not obeyed", refused)
    tools("configs", "--alter", *entity, "--delete-config", "max.message.bytes")
    described = tools("configs", "--describe", *entity)
    require("max.message.bytes=1234" not in described, "max.message.bytes was not removed", described)


def configs_broker(tools: Tools) -> None:
    everything = tools(
        "configs", "--describe", "--entity-type", "brokers", "--entity-name", tools.node_ids()[0], "--all"
    )
    require("log.retention.hours=168" in everything, "the defaults are not described", everything)
    default = ("--entity-type", "brokers", "--entity-default")
    tools("configs", "--alter", *default, "--add-config", "log.cleaner.threads=1")
    described = tools("configs", "--describe", *default)
    require("log.cleaner.threads=1" in described, "not set", described)
    tools("configs", "--alter", *default, "--delete-config", "log.cleaner.threads")
    described = tools("configs", "--describe", *default)
    require("log.cleaner.threads=1" not in described, "not removed", described)


def configs_quota(tools: Tools) -> None:
    entity = ("--entity-type", "clients", "--entity-name", tools.name)
    tools("configs", "--alter", *entity, "--add-config", "producer_byte_rate=1048576")
    described = tools("configs", "--describe", *entity)
    require("producer_byte_rate" in described, "not set", described)
    tools("configs", "--alter", *entity, "--delete-config", "producer_byte_rate")


def configs_scram(tools: Tools) -> None:
    entity = ("--entity-type", "users", "--entity-name", tools.name)
    tools("configs", "--alter", *entity, "--add-config", "SCRAM-SHA-256=[password=secret]")
    described = tools("configs", "--describe", *entity)
    require("SCRAM-SHA-256" in described, "not set", described)
    tools("configs", "--alter", *entity, "--delete-config", "SCRAM-SHA-256")


def client_metrics(tools: Tools) -> None:
    subscription = ("--name", tools.name)
    tools("client-metrics", "--alter", *subscription, "--metrics", "org.apache.kafka.", "--interval", 5000)
    # By lines: another check runs beside this one, whose subscription has a name that ends alike.
    require(tools.name in tools("client-metrics", "--list").splitlines(), "not listed")
    tools("client-metrics", "--alter", *subscription, "--match", "client_id=shop-.*,client_software_name=java")
    described = tools("client-metrics", "--describe", *subscription)
    for value in (
        f"Client metrics configs for {tools.name} are:",
        "interval.ms=5000",
        "metrics=org.apache.kafka.",
        "match=client_id=shop-.*,client_software_name=java",
    ):
        require(value in described, f"{value} is not described", described)
    tools("client-metrics", "--delete", *subscription)
    listed = tools("client-metrics", "--list")
    require(tools.name not in listed.splitlines(), "still listed", listed)


def client_metrics_refusals(tools: Tools) -> None:
    subscription = ("--name", tools.name)
    for change, error in (
        (("--interval", 5), "InvalidRequestException: Invalid value 5 for interval.ms"),
        (("--match", "color=red"), "InvalidConfigurationException: Illegal client matching pattern: color=red"),
        (("--match", "client_id=a=b"), "Illegal client matching pattern: client_id=a=b"),
        (("--match", "client_id=("), "Illegal client matching pattern: client_id=("),
    ):
        output = tools("client-metrics", "--alter", *subscription, *change, check=False)
        require(error in output, f"{change} was not refused with {error}", output)
    listed = tools("client-metrics", "--list")
    require(tools.name not in listed.splitlines(), "a refused subscription is listed", listed)


def configs_client_metrics(tools: Tools) -> None:
    entity = ("--entity-type", "client-metrics", "--entity-name", tools.name)
    tools("configs", "--alter", *entity, "--add-config", "interval.ms=1000,metrics=[org.a,org.b]")
    described = tools("configs", "--describe", *entity)
    for value in (
        "interval.ms=1000 sensitive=false synonyms={DYNAMIC_CLIENT_METRICS_CONFIG:interval.ms=1000}",
        "metrics=org.a,org.b sensitive=false synonyms={DYNAMIC_CLIENT_METRICS_CONFIG:metrics=org.a,org.b}",
    ):
        require(value in described, f"{value} is not described", described)
    tools("configs", "--alter", *entity, "--delete-config", "interval.ms,metrics")
    described = tools("configs", "--describe", *entity)
    require("interval.ms" not in described, "not removed", described)


def acls(tools: Tools) -> None:
    rule = ("--allow-principal", "User:bob", "--operation", "Read", "--topic", tools.name)
    tools("acls", "--add", *rule)
    require("User:bob" in tools("acls", "--list", "--topic", tools.name), "not listed")
    tools("acls", "--remove", *rule, "--force")
    require("User:bob" not in tools("acls", "--list", "--topic", tools.name), "still listed")


CHECKS = (
    configs_topic,
    configs_broker,
    configs_quota,
    configs_scram,
    client_metrics,
    client_metrics_refusals,
    configs_client_metrics,
    acls,
)
