"""The command line, without the work behind it."""

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from penstock import __version__, cli


def test_importing_the_command_line_loads_neither_node_nor_extras() -> None:
    program = (
        "import sys, penstock.cli\n"
        "ours = {name.split('.')[1] for name in sys.modules if name.startswith('penstock.')}\n"
        "extras = {'aiokafka', 'kafka', 'pyspark', 'confluent_kafka', 'kio', 'rich', 'asyncio'} & sys.modules.keys()\n"
        "print(sorted(ours), sorted(extras))"
    )
    answer = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout == "['cli'] []\n"


def test_commands_over_http_load_what_they_ask_with_and_no_more() -> None:
    program = (
        "import sys, click, penstock.cli\n"
        "names = ('status', 'doctor', 'events', 'elect', 'reassign', 'drain', 'decommission', 'config', 'features')\n"
        "context = click.Context(penstock.cli.main)\n"
        "commands = [penstock.cli.main.get_command(context, name) for name in names]\n"
        "import penstock.client.admin\n"
        "print(len(commands), sorted({'aiohttp', 'rich', 'kio'} & sys.modules.keys()))"
    )
    answer = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout == "9 []\n"


def test_quorum_operations_over_http_load_no_node() -> None:
    program = (
        "import sys, click, penstock.broker.operator_commands.commands\n"
        "rooms = {'.'.join(name.split('.')[:3]) for name in sys.modules}\n"
        "print(sorted(room for room in rooms if room.startswith(('penstock.broker.', 'penstock.storage'))))"
    )
    answer = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout == "['penstock.broker.operator_commands']\n"


def test_every_subcommand_is_there_and_has_help() -> None:
    for name in cli.main.list_commands(click.Context(cli.main)):
        answer = CliRunner().invoke(cli.main, [name, "--help"])
        assert answer.exit_code == 0, answer.output
        assert "Usage:" in answer.output


def test_version() -> None:
    answer = CliRunner().invoke(cli.main, ["--version"])
    assert (answer.exit_code, answer.output) == (0, f"penstock, version {__version__}\n")


def test_unknown_subcommand_suggests_the_nearest() -> None:
    answer = CliRunner().invoke(cli.main, ["dwon"])
    assert answer.exit_code == 2
    assert "Did you mean 'down'?" in answer.output


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script_calls_the_command(shell: str) -> None:
    answer = CliRunner().invoke(cli.main, ["completion", shell])
    assert answer.exit_code == 0
    assert "_PENSTOCK_COMPLETE" in answer.output


def complete(words: str, position: int) -> list[str]:
    environment = {
        "_PENSTOCK_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(position),
        # No broker listens there, so no topic is found, and that is no error.
        "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:9",
    }
    answer = CliRunner().invoke(cli.main, [], prog_name="penstock", env=environment)
    return [line.removeprefix("plain,") for line in answer.stdout.split()]


def test_commands_and_options_are_completed() -> None:
    assert complete("penstock to", 1) == ["topic", "token"]
    assert complete("penstock topic de", 2) == ["delete", "describe"]
    assert complete("penstock consume some-topic --fo", 3) == ["--follow", "--format"]


def test_without_a_broker_no_topic_is_completed() -> None:
    assert complete("penstock consume so", 2) == []
