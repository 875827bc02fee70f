"""Principals on command lines: User:NAME."""

from __future__ import annotations

import click


def split_principal(context: click.Context, parameter: click.Parameter, text: str) -> tuple[str, str]:
    """Type and name. Raises BadParameter."""
    kind, colon, name = text.partition(":")
    if not (kind and colon and name):
        raise click.BadParameter(f"{text!r} is not of the form User:NAME", ctx=context, param=parameter)
    return kind, name
