"""The Helm chart, rendered by Helm's own engine, is what Kubernetes takes, and its pods are nodes of one cluster."""

from __future__ import annotations

import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from deploy_files import DEPLOY, ROOT, expand, find, node_started_by
from missing_tools import unavailable

from penstock.bench.anchor.jars import cache_folder
from penstock.broker.configuration.node_config import NodeConfig

pytestmark = pytest.mark.integration

CHART: Final = DEPLOY / "helm" / "penstock"
# The oldest that is supported by its makers, and the newest that is known here.
KUBERNETES: Final = ("1.34", "1.37")
ID: Final = {"cluster": {"id": "4L6g3nShT-eMCtK--X86sw", "secret": "s"}}
COMBINED: Final[dict[str, Any]] = ID
GROWN: Final[dict[str, Any]] = {
    **ID,
    "brokers": {"count": 5, "firstId": 1},
    "outside": {"enabled": True, "host": "kafka-{ordinal}.example.org"},
    "antiAffinity": "hard",
}
SEPARATE: Final[dict[str, Any]] = {
    **ID,
    "controllers": {"separate": True},
    "outside": {"enabled": True, "type": "LoadBalancer", "host": "kafka-{ordinal}.example.org", "port": 9094},
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
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
)


@cache
def tools() -> Path:
    folder = cache_folder() / "chart-tools"
    listed = (ROOT / "requirements" / "chart.txt").read_text()
    installed = folder / "installed.txt"
    if not installed.exists() or installed.read_text() != listed:
        unavailable("Helm's engine is not installed (CI=true tests/install_tools.sh)")
    return folder / "bin"


@cache
def answers() -> list[dict[str, Any]]:
    """What Helm makes of all the values above, in one process."""
    renderer = ROOT / "tests" / "helpers" / "chart_renderer.py"
    asked = [str(CHART), COMBINED, GROWN, SEPARATE, BARE, *(values for values, _ in WRONG)]
    rendered = subprocess.run(
        [tools() / "python", renderer], input=json.dumps(asked), capture_output=True, text=True, check=True, timeout=120
    )
    read: list[dict[str, Any]] = json.loads(rendered.stdout)
    return read


def manifests(index: int) -> list[dict[str, Any]]:
    texts: dict[str, str] = answers()[index].get("manifests", {})
    assert texts, answers()[index]
    documents = [one for path, text in texts.items() if path.endswith(".yaml") for one in yaml.safe_load_all(text)]
    return [one for one in documents if one]


def nodes(folder: Path, rendered: list[dict[str, Any]]) -> dict[str, NodeConfig]:
    """Each pod of the chart by its name, as a node of it would be configured."""
    properties = find(rendered, "ConfigMap")["data"]["server.properties"]
    found = {}
    for one in rendered:
        if one["kind"] != "StatefulSet":
            continue
        for ordinal in range(one["spec"]["replicas"]):
            name = f"{one['metadata']['name']}-{ordinal}"
            (container,) = one["spec"]["template"]["spec"]["containers"]
            known = {"POD_NAME": name, "HOST_IP": "10.9.8.7", "PENSTOCK_CLUSTER_SECRET": "s"}
            for variable in container["env"]:
                if "value" in variable:
                    known[variable["name"]] = expand(variable["value"], known)
            found[name] = node_started_by(folder, known, properties)
    return found


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
