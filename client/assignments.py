"""Options of the form `key=value` that may be repeated."""

from collections.abc import Sequence

import click


def parse_assignments(context: click.Context, parameter: click.Parameter, texts: Sequence[str]) -> dict[str, str]:
    """A callback of click: the last of two equal keys wins. What keys there are is for others to say."""
    values = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise click.BadParameter(f"{text!r} is not of the form key=value", ctx=context, param=parameter)
        values[key.strip()] = value.strip()
    return values
