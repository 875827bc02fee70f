"""--command-config and -X: which wins, and what must not be seen on a command line."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from penstock.client.bootstrap import Bootstrap, bootstrap_options
from penstock.client.command_config import load_client_properties
from penstock.protocol.errors import ConfigError

ENVIRONMENT_PROVIDER = {
    "config.providers": "env",
    "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
}


def test_assignments_go_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("security.protocol=SSL\nclient.id=of-file\n")
    found = load_client_properties(str(path), {"client.id": "of-command"}, environment={})
    assert found == {"security.protocol": "ssl", "client.id": "of-command"}


@pytest.mark.parametrize("key", ["sasl.password", "sasl.jaas.config", "ssl.key.password", "ssl.keystore.key"])
def test_a_password_on_a_command_line_is_refused(key: str) -> None:
    with pytest.raises(ConfigError, match=f"^-X {key}=… would show it to every user of this machine: ") as raised:
        load_client_properties(None, {key: "hunter2"}, environment={})
    assert "hunter2" not in str(raised.value)


def test_a_variable_on_a_command_line_is_none(tmp_path: Path) -> None:
    """KIP-297: the provider may be named in the file."""
    path = tmp_path / "client.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in ENVIRONMENT_PROVIDER.items()))
    found = load_client_properties(str(path), {"ssl.key.password": "${env:MARK}"}, environment={"MARK": "hunter2"})
    assert found == {"ssl.key.password": "hunter2"}
    with pytest.raises(ConfigError, match="would show it"):
        load_client_properties(None, {"ssl.key.password": "${env:MARK}"}, environment={"MARK": "hunter2"})


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="none cannot be read: No such file or directory"):
        load_client_properties(str(tmp_path / "none"), {}, environment={})
    (tmp_path / "latin").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="latin is not UTF-8"):
        load_client_properties(str(tmp_path / "latin"), {}, environment={})


@click.command()
@bootstrap_options
def show(bootstrap: Bootstrap) -> None:
    click.echo(f"{bootstrap} {dict(bootstrap.properties)} {bootstrap!r}")


def test_the_file_names_brokers_unless_the_command_line_does(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("bootstrap.servers=a:1,b:2\nssl.key.password=hunter2\n")
    runner = CliRunner(env={"KAFKA_COMMAND_CONFIG": str(path)})
    of_file = runner.invoke(show, []).output
    assert of_file.startswith("a:1,b:2 {'ssl.key.password': 'hunter2'}")
    assert of_file.count("hunter2") == 1, "its repr has no properties"
    assert runner.invoke(show, ["--bootstrap", "c:3"]).output.startswith("c:3 ")


@pytest.mark.parametrize("text", ["bootstrap.servers=:", "security.protocol=TLS"])
def test_what_is_wrong_with_a_file_ends_the_command(tmp_path: Path, text: str) -> None:
    (tmp_path / "client.properties").write_text(text)
    answer = CliRunner().invoke(show, ["--command-config", str(tmp_path / "client.properties")])
    assert answer.exit_code == 2
