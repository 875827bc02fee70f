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
    require(tools.name in tools("client-metrics", "--list"), "not listed")
    tools("client-metrics", "--delete", *subscription)


def acls(tools: Tools) -> None:
    rule = ("--allow-principal", "User:bob", "--operation", "Read", "--topic", tools.name)
    tools("acls", "--add", *rule)
    require("User:bob" in tools("acls", "--list", "--topic", tools.name), "not listed")
    tools("acls", "--remove", *rule, "--force")
    require("User:bob" not in tools("acls", "--list", "--topic", tools.name), "still listed")


CHECKS = (configs_topic, configs_broker, configs_quota, configs_scram, client_metrics, acls)
