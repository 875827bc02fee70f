"""Secrets that a command is given: from a file, from standard input, or typed. Never from the command line, which every
user of the machine can read."""

from __future__ import annotations

import sys
from pathlib import Path

import click


def read_secret(what: str, path: str | None, *, is_new: bool) -> str:
    """The first line of the file, of standard input for `-` or where that is no terminal, or what is typed.

    `is_new` asks for it twice. Raises ClickException.
    """
    if path is not None and path != "-":
        try:
            text = Path(path).read_text(encoding="utf-8")
        except OSError as error:
            raise click.ClickException(f"{path} cannot be read: {error.strerror or error}.") from error
        except UnicodeDecodeError:
            raise click.ClickException(f"{path} is not UTF-8.") from None
    elif path is None and sys.stdin.isatty():
        text = str(click.prompt(what, hide_input=True, confirmation_prompt=is_new, err=True))
    else:
        text = sys.stdin.readline()
    secret = text.splitlines()[0] if text else ""
    if not secret:
        raise click.ClickException(f"The {what.lower()} is empty.")
    return secret
