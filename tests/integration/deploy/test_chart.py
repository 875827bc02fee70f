"""The Helm chart, rendered by Helm's own engine, is what Kubernetes takes, and its pods are nodes of one cluster."""

from __future__ import annotations

import shlex
import subprocess
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from chart import containers, manifests_of, render, tools
from deploy_files import find, node_started_by
from operations_page import PAGE, console_lines

from penstock.broker.configuration.node_config import NodeConfig

pytestmark = pytest.mark.integration

# The oldest that is supported by its makers, and the newest that is known here.
KUBERNETES: Final = ("1.34", "1.37")
ID: Final = {"cluster": {"id": "4L6g3nShT-eMCtK--X86sw", "secret": "s"}}
COMBINED: Final[dict[str, Any]] = ID
GROWN: Final[dict[str, Any]] = {
    **ID,
    "brokers": {"count": 5, "firstId": 1, "storage": {"size": "1Ti", "volumes": 3}},
    "networkPolicy": {"enabled": True},
    "outside": {"enabled": True, "host": "kafka-{ordinal}.example.org"},
    "antiAffinity": "hard",
}
SEPARATE: Final[dict[str, Any]] = {
    **ID,
    "controllers": {"separate": True},
    "outside": {"enabled": True, "type": "LoadBalancer", "host": "kafka-{ordinal}.example.org", "port": 9094},
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "networkPolicy": {
        "enabled": True,
        "clients": [{"podSelector": {"matchLabels": {"uses": "streams"}}}],
        "outside": [{"ipBlock": {"cidr": "192.0.2.0/24"}}],
        "operators": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}],
    },
    "drain": {"enabled": False},
    "podAnnotations": {"a": "b"},
    "podLabels": {"c": "d"},
    "tolerations": [{"key": "k", "operator": "Exists"}],
    "nodeSelector": {"disk": "fast"},
    "priorityClassName": "high",
    "imagePullSecrets": [{"name": "pull"}],
    "environment": [{"name": "PENSTOCK_LOG_LEVEL", "value": "DEBUG"}],
    "topologyKey": "",
    "antiAffinity": "none",
}
BARE: Final[dict[str, Any]] = {
    "cluster": {"id": ID["cluster"]["id"], "existingSecret": "mine"},
    "podDisruptionBudget": {"enabled": False},
    "serviceAccount": {"create": False},
    "outside": {"enabled": True},
}
WRONG: Final[tuple[tuple[dict[str, Any], str], ...]] = (
    ({}, "/cluster/id"),
    ({**ID, "controllers": {"count": 4}}, "/controllers/count"),
    ({**ID, "properties": {"node.id": "1"}}, "node.id"),
    ({**ID, "replicas": 3}, "replicas"),
    ({**ID, "outside": {"enabled": True, "type": "LoadBalancer"}}, "/outside/host"),
    ({**ID, "controllers": {"count": 5}}, "there are only 3 brokers"),
    ({**ID, "controllers": {"separate": True, "firstId": 2}}, "share a node id"),
    ({**ID, "drain": {"deadlineSeconds": 150}}, "has to be left for the controlled shutdown"),
    ({**ID, "brokers": {"storage": {"volumes": 0}}}, "/brokers/storage/volumes"),
    ({**ID, "networkPolicy": {"enabled": True, "clients": [{}]}}, "/networkPolicy/clients/0"),
)


@cache
def answers() -> list[dict[str, Any]]:
    """What Helm makes of all the values above, in one process."""
    return render(COMBINED, GROWN, SEPARATE, BARE, *(values for values, _ in WRONG))


def manifests(index: int) -> list[dict[str, Any]]:
    return manifests_of(answers()[index])


def nodes(folder: Path, rendered: list[dict[str, Any]]) -> dict[str, NodeConfig]:
    """Each pod of the chart by its name, as a node of it would be configured."""
    properties = find(rendered, "ConfigMap")["data"]["server.properties"]
    return {name: node_started_by(folder, environment, properties) for name, _, environment in containers(rendered)}


@pytest.mark.parametrize("index", range(4))
def test_lint_finds_nothing(index: int) -> None:
    lint = answers()[index]["lint"]
    assert not lint["errors"]
    assert [one["error"] for one in lint["messages"] if one["severity"] > 1] == []


@pytest.mark.parametrize("version", KUBERNETES)
def test_kubernetes_takes_all_manifests(tmp_path: Path, version: str) -> None:
    file = tmp_path / "manifests.yaml"
    # It is of another project, whose schemas are not among these.
    known = [one for index in range(4) for one in manifests(index) if one["kind"] != "ServiceMonitor"]
    file.write_text(yaml.safe_dump_all(known))
    command = [str(tools() / "kubernetes-validate"), "--strict", "-k", version, str(file)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    known[0]["unheard"] = 1
    file.write_text(yaml.safe_dump_all(known))
    assert subprocess.run(command, capture_output=True, check=False, timeout=120).returncode != 0


@pytest.mark.parametrize("index", range(4))
def test_the_voters_are_the_pods_that_are_controllers_at_the_names_that_kubernetes_gives_them(
    tmp_path: Path, index: int
) -> None:
    rendered = manifests(index)
    started = nodes(tmp_path, rendered)
    assert len({config.node_id for config in started.values()}) == len(started)
    domain = f"{find(rendered, 'Service', '-nodes')['metadata']['name']}.streams.svc.cluster.local"
    controllers = {
        config.node_id: (f"{name}.{domain}", config.controller_listeners[0].port)
        for name, config in started.items()
        if config.is_controller
    }
    assert len(controllers) == 3
    for config in started.values():
        assert {number: (voter.host, voter.port) for number, voter in config.voters.items()} == controllers


def test_a_cluster_that_grows_keeps_its_voters_and_its_old_nodes_keep_their_roles(tmp_path: Path) -> None:
    started = nodes(tmp_path, manifests(1))
    assert {name: config.is_controller for name, config in started.items()} == {
        f"demo-penstock-broker-{ordinal}": ordinal < 3 for ordinal in range(5)
    }


def test_separate_controllers_hold_no_records(tmp_path: Path) -> None:
    roles = {name: set(config.process_roles) for name, config in nodes(tmp_path, manifests(2)).items()}
    assert roles == {
        f"demo-penstock-{role}-{ordinal}": {role} for role in ("broker", "controller") for ordinal in range(3)
    }


@pytest.mark.parametrize("index", [1, 2, 3])
def test_clients_outside_reach_each_broker_at_a_service_of_its_own(tmp_path: Path, index: int) -> None:
    rendered = manifests(index)
    for name, config in nodes(tmp_path, rendered).items():
        if not config.is_broker:
            continue
        ordinal = name.rpartition("-")[2]
        service = find(rendered, "Service", f"-outside-{ordinal}")
        assert service["spec"]["selector"] == {"statefulset.kubernetes.io/pod-name": name}
        (port,) = service["spec"]["ports"]
        (advertised,) = (one for one in config.advertised_listeners if one.name == "OUTSIDE")
        assert advertised.port == port.get("nodePort", port["port"])
        assert advertised.host == ("10.9.8.7" if index == 3 else f"kafka-{ordinal}.example.org")


def pods(index: int) -> list[dict[str, Any]]:
    return [one["spec"]["template"] for one in manifests(index) if one["kind"] == "StatefulSet"]


@pytest.mark.parametrize("index", range(4))
def test_each_port_that_is_named_is_one_of_the_container(index: int) -> None:
    for pod in pods(index):
        (container,) = pod["spec"]["containers"]
        ports = {one["name"]: one["containerPort"] for one in container["ports"]}
        assert len(set(ports.values())) == len(ports)
        for probe, path in (("startupProbe", "/health"), ("livenessProbe", "/health"), ("readinessProbe", "/ready")):
            assert container[probe]["httpGet"] == {"path": path, "port": "http"}
        assert ports["http"] == 9644
    for one in manifests(index):
        if one["kind"] != "Service":
            continue
        chosen = [pod for pod in pods(index) if one["spec"]["selector"].items() <= pod["metadata"]["labels"].items()]
        if "statefulset.kubernetes.io/pod-name" not in one["spec"]["selector"]:
            assert chosen
            named = {port["name"] for pod in chosen for port in pod["spec"]["containers"][0]["ports"]}
            assert {port["targetPort"] for port in one["spec"]["ports"]} - {9093} <= named


@pytest.mark.parametrize("index", range(4))
def test_voters_start_together_and_stops_are_given_time_and_properties_come_from_no_service(index: int) -> None:
    for one in manifests(index):
        if one["kind"] == "StatefulSet":
            # In order, the first pod would wait for a quorum that has only it.
            assert one["spec"]["podManagementPolicy"] == "Parallel"
            assert one["spec"]["serviceName"] == find(manifests(index), "Service", "-nodes")["metadata"]["name"]
    assert find(manifests(index), "Service", "-nodes")["spec"]["publishNotReadyAddresses"] is True
    for pod in pods(index):
        assert pod["spec"]["terminationGracePeriodSeconds"] == 180
        # PENSTOCK_SERVICE_HOST and the like would be read as properties.
        assert pod["spec"]["enableServiceLinks"] is False


def test_at_most_one_node_of_all_is_taken_away_on_purpose() -> None:
    for index in range(3):
        budget = find(manifests(index), "PodDisruptionBudget")["spec"]
        assert budget["maxUnavailable"] == 1
        for pod in pods(index):
            assert budget["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert not [one for one in manifests(3) if one["kind"] == "PodDisruptionBudget"]


def test_a_changed_property_rolls_the_pods_and_a_grown_cluster_does_not() -> None:
    def checksum(index: int) -> str:
        return str(pods(index)[0]["metadata"]["annotations"]["checksum/config"])

    assert checksum(0) == checksum(3)
    assert checksum(0) != checksum(2)


@pytest.mark.parametrize("wrong", range(len(WRONG)))
def test_values_that_cannot_be_are_refused_with_a_sentence(wrong: int) -> None:
    assert WRONG[wrong][1] in answers()[4 + wrong]["error"]


def test_each_volume_of_a_node_is_a_log_directory_of_its_own(tmp_path: Path) -> None:
    for index, count in ((0, 1), (1, 3)):
        (pod,) = pods(index)
        (container,) = pod["spec"]["containers"]
        (one,) = (one for one in manifests(index) if one["kind"] == "StatefulSet")
        claims = [claim["metadata"]["name"] for claim in one["spec"]["volumeClaimTemplates"]]
        mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        assert len(claims) == len(set(claims)) == count
        for config in nodes(tmp_path, manifests(index)).values():
            assert config.log_dirs == tuple(f"{mounts[claim]}/data" for claim in claims)


def test_a_broker_is_drained_before_its_container_is_stopped() -> None:
    for index, is_drained in ((0, True), (1, True), (2, False), (3, True)):
        for pod in pods(index):
            hook = pod["spec"]["containers"][0].get("lifecycle")
            assert (hook is not None) == is_drained
            if hook is not None:
                command = hook["preStop"]["exec"]["command"][-1]
                deadline_s = int(command.split("--deadline ")[1].split()[0])
                assert deadline_s + 60 <= pod["spec"]["terminationGracePeriodSeconds"]
    # Controllers of their own lead no partitions; a broker that is alone finds no other to take over.
    alone = {"brokers": {"count": 1}, "controllers": {"count": 1}}
    rendered = render({**ID, "controllers": {"separate": True}}, {**ID, **alone})
    hooked = [
        {name: "lifecycle" in container for name, container, _ in containers(manifests_of(answer))}
        for answer in rendered
    ]
    assert len(hooked[0]) == 6
    assert all(is_there == ("broker" in name) for name, is_there in hooked[0].items())
    assert hooked[1] == {"demo-penstock-broker-0": False}


def allowed(index: int, component: str, port: str | int) -> list[Any]:
    """Who reaches a port of the component's pods: the `from` of each rule; None is every address."""
    (policy,) = (
        one
        for one in manifests(index)
        if one["kind"] == "NetworkPolicy" and one["metadata"]["name"].endswith(f"-{component}")
    )
    assert policy["spec"]["policyTypes"] == ["Ingress"]
    return [rule.get("from") for rule in policy["spec"]["ingress"] if port in {one["port"] for one in rule["ports"]}]


def test_ports_are_reached_by_nodes_and_by_those_who_are_listed() -> None:
    release = {"app.kubernetes.io/name": "penstock", "app.kubernetes.io/instance": "demo"}
    own = [{"podSelector": {"matchLabels": release}}]
    everyone: list[Any] = [{"namespaceSelector": {}}]
    assert allowed(1, "broker", "inside") == [own, everyone]
    assert (allowed(1, "broker", 9093), allowed(1, "broker", "http")) == ([own], [own])
    assert allowed(1, "broker", "outside") == [None]
    listed = SEPARATE["networkPolicy"]
    assert allowed(2, "broker", "inside") == [own, listed["clients"]]
    assert allowed(2, "broker", "outside") == [listed["outside"]]
    assert allowed(2, "broker", 9093) == []
    assert allowed(2, "broker", "http") == allowed(2, "controller", "http") == [own, listed["operators"]]
    assert (allowed(2, "controller", 9093), allowed(2, "controller", "inside")) == ([own], [])
    for index in (1, 2):
        for pod in pods(index):
            assert release.items() <= pod["metadata"]["labels"].items()
    assert not [one for one in manifests(0) if one["kind"] == "NetworkPolicy"]


def set_values(line: str) -> dict[str, Any]:
    """The values of `--set a.b=c` of a command line, as Helm reads them."""
    values: dict[str, Any] = {}
    words = shlex.split(line)
    for option, assignment in pairwise(words):
        if option == "--set":
            path, _, text = assignment.partition("=")
            *parents, last = path.split(".")
            inner = values
            for parent in parents:
                inner = inner.setdefault(parent, {})
            inner[last] = int(text) if text.isdecimal() else text
    return values


def test_the_commands_of_the_page_of_operations_have_values_that_the_chart_takes() -> None:
    lines = [line for line in console_lines(PAGE.read_text()) if line.startswith("$ helm ")]
    install, *upgrades = map(set_values, lines)
    assert len(upgrades) > 1
    assert all(line.split()[4] == "deploy/helm/penstock" for line in lines)
    for answer in render(install, *({**install, **upgrade} for upgrade in upgrades)):
        assert "error" not in answer
        assert manifests_of(answer)
