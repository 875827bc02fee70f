"""A position as the option of a command."""

import click

from . import clock
from .positions import Position, parse_position


def position_option(context: click.Context, parameter: click.Parameter, text: str | None) -> Position | None:
    """What an option says of `SYNTAX`."""
    if text is None:
        return None
    try:
        return parse_position(text, clock.now_ms())
    except ValueError as error:
        raise click.BadParameter(str(error), ctx=context, param=parameter) from error
