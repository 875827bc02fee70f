"""Each command line of docs/operations.md is executed by a test, or there is a reason why not; its commands exist."""

from __future__ import annotations

import re
import shlex

import click
import pytest
from operations_page import PAGE, unexplained

from penstock import cli


def test_each_command_line_is_executed_or_has_a_reason() -> None:
    assert unexplained(PAGE.read_text()) == []


@pytest.mark.parametrize(
    "block",
    ["```console\n$ kubectl get pods\n```", "```\npenstock down\n```", "```bash\npenstock down\n```"],
)
def test_a_new_line_without_a_reason_would_be_found(block: str) -> None:
    assert len(unexplained(f"{PAGE.read_text()}\n{block}\n")) == 1


def test_a_reason_for_a_line_that_is_gone_would_be_found() -> None:
    assert unexplained(PAGE.read_text().replace("--set brokers.count=5", "--set brokers.count=7")) != []


def unknown_words(text: str) -> list[str]:
    """What `penstock` does not know of a command line: commands and options."""
    command: click.Command = cli.main
    context = click.Context(cli.main)
    _, *words = shlex.split(text)
    while words and isinstance(command, click.Group):
        found = command.get_command(context, words[0])
        if found is None:
            return [words[0]]
        command = found
        words = words[1:]
    options = {name for one in command.get_params(context) for name in one.opts + one.secondary_opts}
    return [word for word in words if word.startswith("-") and word.partition("=")[0] not in options]


def test_commands_in_sentences_are_commands_that_there_are() -> None:
    named = re.findall(r"`(penstock [^`]+)`", PAGE.read_text())
    assert len(named) > 10
    assert {text: unknown for text in named if (unknown := unknown_words(text))} == {}
    assert unknown_words("penstock drain 1 --gently") == ["--gently"]
    assert unknown_words("penstock drian 1") == ["drian"]
