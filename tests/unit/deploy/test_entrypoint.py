"""The entry point of the container: what differs between the pods of a StatefulSet comes from their ordinals."""

from __future__ import annotations

from pathlib import Path

import pytest
from deploy_files import enter, node_started_by

VOTERS = "controller.quorum.voters=10@a-0:9093,11@a-1:9093\ncluster.secret=s\n"
SET = {
    "NODE_ID_BASE": "10",
    "CONTROLLER_COUNT": "2",
    "CONTROLLER_LISTENER": "CONTROLLER://:9093",
    "PENSTOCK_LISTENERS": "INSIDE://:9092,OUTSIDE://:9094",
    "PENSTOCK_ADVERTISED_LISTENERS": "INSIDE://a:9092",
    "PENSTOCK_LISTENER_SECURITY_PROTOCOL_MAP": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "PENSTOCK_INTER_BROKER_LISTENER_NAME": "INSIDE",
    "ADVERTISED_BY_ORDINAL": "OUTSIDE://x:1 OUTSIDE://y:2 OUTSIDE://z:3",
}


@pytest.mark.parametrize(
    ("ordinal", "roles"), [(0, {"broker", "controller"}), (1, {"broker", "controller"}), (2, {"broker"})]
)
def test_a_pod_has_the_id_roles_and_address_of_its_ordinal(tmp_path: Path, ordinal: int, roles: set[str]) -> None:
    config = node_started_by(tmp_path, {**SET, "POD_NAME": f"my-kafka-broker-{ordinal}"}, VOTERS)
    assert config.node_id == 10 + ordinal
    assert set(config.process_roles) == roles
    advertised = {one.name: (one.host, one.port) for one in config.advertised_listeners}
    assert advertised["INSIDE"] == ("a", 9092)
    assert advertised["OUTSIDE"] == ("xyz"[ordinal], ordinal + 1)
    assert [one.port for one in config.controller_listeners] == ([9093] if "controller" in roles else [])


def test_arguments_are_those_of_start_and_a_node_without_ordinal_is_as_its_variables_say(tmp_path: Path) -> None:
    entered = enter(tmp_path, {"PENSTOCK_NODE_ID": "4"}, "/etc/a file.properties", "--set", "a=b c")
    assert "ARGUMENTS=start /etc/a file.properties --set a=b c\n" in entered.stdout
    assert "PENSTOCK_NODE_ID=4\n" in entered.stdout


@pytest.mark.parametrize("name", ["kafka", "kafka-", "kafka-x", "kafka-1x", "3"])
def test_a_pod_of_no_stateful_set_is_refused(tmp_path: Path, name: str) -> None:
    entered = enter(tmp_path, {**SET, "POD_NAME": name})
    assert entered.returncode == 2
    assert f"the pod is called {name}, but" in entered.stderr


def test_a_pod_without_an_address_of_its_own_is_refused(tmp_path: Path) -> None:
    entered = enter(tmp_path, {**SET, "POD_NAME": "kafka-3"})
    assert entered.returncode == 2
    assert "has 3 addresses, and none for ordinal 3" in entered.stderr
