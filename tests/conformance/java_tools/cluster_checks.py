"""The cluster: its APIs, id, features, quorum, log directories, replicas."""

from __future__ import annotations

import json
import re

from penstock.client.clock import wait_until

from .tools import Tools, require

REASSIGNMENT_TIMEOUT_S = 30.0


def api_versions(tools: Tools) -> None:
    output = tools("broker-api-versions")
    for api in ("Produce(0)", "Fetch(1)", "Metadata(3)", "ApiVersions(18)", "CreateTopics(19)"):
        require(api in output, f"{api} is not listed", output)


def cluster_id(tools: Tools) -> None:
    output = tools.run("cluster", "cluster-id", "--bootstrap-server", tools.bootstrap)
    require(re.search(r"Cluster ID: [\w-]{22}", output), "no cluster id", output)


def cluster_list_endpoints(tools: Tools) -> None:
    output = tools.run("cluster", "list-endpoints", "--bootstrap-server", tools.bootstrap)
    require("127.0.0.1" in output or "localhost" in output, "no endpoint", output)


def features(tools: Tools) -> None:
    output = tools.run("features", "--bootstrap-server", tools.bootstrap, "describe")
    require("Feature: metadata.version" in output, "no metadata.version", output)


def feature_tables(tools: Tools) -> None:
    server = ("--bootstrap-server", tools.bootstrap)
    output = tools.run("features", *server, "version-mapping", "--release-version", "4.3-IV0")
    require("metadata.version=30 (4.3-IV0)" in output, "not the release's metadata.version", output)
    feature = ("--feature", "eligible.leader.replicas.version=1")
    output = tools.run("features", *server, "feature-dependencies", *feature)
    require("metadata.version=23 (4.0-IV1)" in output, "not what it depends on", output)


def metadata_quorum(tools: Tools) -> None:
    status = tools.run("metadata-quorum", "--bootstrap-server", tools.bootstrap, "describe", "--status")
    require("LeaderId:" in status, "no leader", status)
    replication = tools.run("metadata-quorum", "--bootstrap-server", tools.bootstrap, "describe", "--replication")
    require("Leader" in replication, "no leader among the replicas", replication)


def log_dirs(tools: Tools) -> None:
    topic = tools.new_topic()
    tools.produce(topic, 10)
    output = tools("log-dirs", "--describe", "--topic-list", topic)
    described = json.loads(next((line for line in output.splitlines() if line.startswith("{")), "{}"))
    partitions = described["brokers"][0]["logDirs"][0]["partitions"]
    require([entry["partition"] for entry in partitions] == [f"{topic}-0"], "not the topic's partition", output)
    require(partitions[0]["size"] > 0, "it has no size", output)


def leader_election(tools: Tools) -> None:
    tools("leader-election", "--election-type", "preferred", "--topic", tools.new_topic(2), "--partition", 0)


def reassign_partitions(tools: Tools) -> None:
    topic, node = tools.new_topic(2), tools.node_ids()[-1]
    wanted = tools.work / f"{tools.name}.json"
    partitions = [{"topic": topic, "partition": partition, "replicas": [node]} for partition in range(2)]
    wanted.write_text(json.dumps({"version": 1, "partitions": partitions}))
    tools("reassign-partitions", "--reassignment-json-file", str(wanted), "--execute")
    outputs: list[str] = []

    def is_complete() -> bool:
        outputs.append(tools("reassign-partitions", "--reassignment-json-file", str(wanted), "--verify"))
        return outputs[-1].count("is completed") == 2

    require(wait_until(is_complete, timeout_s=REASSIGNMENT_TIMEOUT_S), "not completed", outputs[-1])


CHECKS = (
    api_versions,
    cluster_id,
    cluster_list_endpoints,
    features,
    feature_tables,
    metadata_quorum,
    log_dirs,
    leader_election,
    reassign_partitions,
)
