"""The systemd units and the properties beside them agree with the node."""

from __future__ import annotations

import pytest
import yaml
from deploy_files import DEPLOY

from penstock.broker.configuration.node_config import load
from penstock.broker.configuration.properties import merge_properties
from penstock.protocol.errors import ConfigError

UNITS = DEPLOY / "systemd"


def lines(name: str) -> list[str]:
    return [line for line in (UNITS / name).read_text().splitlines() if line and not line.startswith("#")]


def test_the_example_starts_a_voter_of_three_whose_data_are_where_the_unit_may_write() -> None:
    text = (UNITS / "server.properties").read_text()
    config = load(merge_properties(file_text=text, environment={}, assignments=["cluster.secret=drawn"]))
    assert config.node_id in config.voters
    assert len(config.voters) == 3
    assert config.default_replication_factor == 3
    assert [one.host for one in config.admin_listeners] == ["127.0.0.1"]
    assert "StateDirectory=penstock" in lines("penstock.service")
    assert config.log_dirs == ("/var/lib/penstock",)


def test_the_example_is_refused_until_it_has_a_secret() -> None:
    with pytest.raises(ConfigError, match=r"cluster\.secret"):
        load(merge_properties(file_text=(UNITS / "server.properties").read_text(), environment={}))


def test_the_unit_of_several_nodes_differs_only_in_names() -> None:
    one, several = lines("penstock.service"), lines("penstock@.service")
    differing = {line.partition("=")[0] for line in set(one) ^ set(several)}
    assert differing == {
        "Description",
        "EnvironmentFile",
        "ExecStart",
        "ExecStop",
        "WorkingDirectory",
        "StateDirectory",
    }
    assert all("%i" in line for line in set(several) - set(one))


def test_a_node_whose_properties_are_wrong_is_not_started_again() -> None:
    assert "RestartPreventExitStatus=2" in lines("penstock.service")
    assert "Restart=on-failure" in lines("penstock.service")


def of_unit(name: str, key: str) -> str:
    (line,) = (line for line in lines(name) if line.startswith(f"{key}="))
    return line.partition("=")[2]


@pytest.mark.parametrize("name", ["penstock.service", "penstock@.service"])
def test_the_node_that_is_stopped_is_drained_before_as_in_kubernetes(name: str) -> None:
    program, command, *words = of_unit(name, "ExecStop").split()
    started, _, properties = of_unit(name, "ExecStart").split()
    # A minus: the stop goes on whatever comes of it.
    assert (program, command) == (f"-{started}", "drain")
    options = dict(zip(words, [*words[1:], ""], strict=True))
    assert options["--config"] == properties
    assert int(options["--deadline"]) < int(of_unit(name, "TimeoutStopSec"))
    chart = DEPLOY / "helm" / "penstock"
    pod = (chart / "templates" / "_statefulset.tpl").read_text()
    assert "--until-restart --wait" in pod
    assert "--until-restart --wait" in " ".join(words)
    assert int(options["--deadline"]) == yaml.safe_load((chart / "values.yaml").read_text())["drain"]["deadlineSeconds"]
