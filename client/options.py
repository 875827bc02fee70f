"""Options that several commands have, and how commands get them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import click

Command: TypeAlias = Callable[..., Any]

json_option: Final = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def with_options(command: Command, *options: Callable[[Command], Command]) -> Command:
    """The command with these options, in the order in which its help shows them."""
    for option in reversed(options):
        command = option(command)
    return command
