"""Transactions: a copy with random aborts, read back committed only; what the tools tell of transactions."""

from __future__ import annotations

import re

from .tools import Tools, require

COPIED_COUNT = 5_000


def transactional_copier(tools: Tools) -> None:
    source, target = tools.new_topic(suffix="-source"), tools.new_topic(suffix="-target")
    tools.run(
        "producer-perf-test",
        *("--topic", source, "--num-records", COPIED_COUNT, "--record-size", 50, "--throughput", -1),
        *("--producer-props", f"bootstrap.servers={tools.bootstrap}"),
    )
    tools.run(
        "transactional-copier",
        *("--broker-list", tools.bootstrap, "--input-topic", source, "--input-partition", 0, "--output-topic", target),
        *("--consumer-group", tools.name, "--transactional-id", tools.name, "--max-messages", COPIED_COUNT),
        *("--transaction-size", 250, "--enable-random-aborts"),
    )
    committed_only = tools.work / f"{tools.name}.properties"
    committed_only.write_text("isolation.level=read_committed\n")
    output = tools(
        "consumer-perf-test",
        *("--topic", target, "--num-records", COPIED_COUNT, "--timeout", 20000),
        *("--command-config", str(committed_only)),
    )
    require(re.search(rf", {COPIED_COUNT}, ", output), f"not exactly {COPIED_COUNT} committed records", output)
    address = ("--bootstrap-server", tools.bootstrap)
    require(tools.name in tools.run("transactions", *address, "list"), "the transactional id is not listed")
    tools.run("transactions", *address, "describe", "--transactional-id", tools.name)
    tools.run("transactions", *address, "describe-producers", "--topic", target, "--partition", 0)


def transactions_list(tools: Tools) -> None:
    tools.run("transactions", "--bootstrap-server", tools.bootstrap, "list")


CHECKS = (transactional_copier, transactions_list)
