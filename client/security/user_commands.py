"""`penstock user …`: users who prove their passwords by SCRAM (KIP-554).

A password never leaves this machine: what the cluster gets and keeps is salted and hashed (RFC 5802).
"""

from __future__ import annotations

import sys
from random import SystemRandom
from typing import Final

import click
from kio.schema.alter_user_scram_credentials.v0.request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kio.schema.describe_user_scram_credentials.v0.request import DescribeUserScramCredentialsRequest, UserName
from kio.static.primitive import i8, i32

from ...protocol.errors import ErrorCode
from ...protocol.scram import BY_NAME, BY_NUMBER, ITERATIONS_MAX, ITERATIONS_MIN
from ..bootstrap import Bootstrap, bootstrap_options
from ..options import json_option
from ..terminal import print_json, print_table, say
from .questions import ask, check
from .secret_input import read_secret

SALT_BYTES: Final = 32

_mechanisms_option = click.option(
    "--mechanism",
    "-m",
    "mechanisms",
    type=click.Choice(list(BY_NAME), case_sensitive=False),
    multiple=True,
    help="One of the two; may be repeated. Both unless given.",
)
_Change = ScramCredentialDeletion | ScramCredentialUpsertion


@click.group()
def user() -> None:
    """Add, list and delete users with passwords (SCRAM)."""


@user.command()
@click.argument("name", metavar="NAME")
@_mechanisms_option
@click.option("--password-file", "path", metavar="FILE", help="The password is its first line; - is standard input.")
@click.option(
    "--iterations",
    type=click.IntRange(ITERATIONS_MIN, ITERATIONS_MAX),
    default=ITERATIONS_MIN,
    show_default=True,
    help="How often the password is hashed.",
)
@json_option
@bootstrap_options
def add(
    bootstrap: Bootstrap, name: str, mechanisms: tuple[str, ...], path: str | None, iterations: int, as_json: bool
) -> None:
    """Give a user a password, a new one if he has one.

    It is asked for on a terminal, and otherwise read from standard input.
    """
    password = read_secret("Password", path, is_new=True)
    chosen = mechanisms or tuple(BY_NAME)
    for mechanism in chosen:
        # Kafka takes one change of a user in a request.
        _alter(bootstrap, _upsertion(name, mechanism, password, iterations))
    if as_json:
        print_json({"user": name, "mechanisms": list(chosen), "iterations": iterations})
    else:
        say(f"User {name} can log in with {' and '.join(chosen)}.")


@user.command("list")
@click.argument("names", metavar="[NAME…]", nargs=-1)
@json_option
@bootstrap_options
def list_(bootstrap: Bootstrap, names: tuple[str, ...], as_json: bool) -> None:
    """List users with passwords, all of them unless some are named."""
    wanted = tuple(UserName(name=name) for name in names) or None
    answer = ask(bootstrap, DescribeUserScramCredentialsRequest(users=wanted))
    check(answer.error_code, answer.error_message)
    for one in answer.results:
        check(one.error_code, one.error_message, about=f"User {one.user}")
    found = sorted(
        (one.user, _name(int(info.mechanism)), int(info.iterations))
        for one in answer.results
        for info in one.credential_infos
    )
    if as_json:
        columns = ("user", "mechanism", "iterations")
        print_json({"credentials": [dict(zip(columns, row, strict=True)) for row in found]})
    elif found:
        print_table(("user", "mechanism", "iterations"), found)
    else:
        say("There are no users with passwords.")


@user.command()
@click.argument("name", metavar="NAME")
@_mechanisms_option
@click.option("--yes", "-y", is_flag=True, help="Do not ask. Without a terminal the command never asks.")
@json_option
@bootstrap_options
def delete(bootstrap: Bootstrap, name: str, mechanisms: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Take a user's password away: of one mechanism, or of all that he has."""
    if not yes and sys.stdin.isatty():
        click.confirm(f"Delete user {name}?", abort=True, err=True)
    chosen = mechanisms or _mechanisms_of(bootstrap, name)
    for mechanism in chosen:
        _alter(bootstrap, ScramCredentialDeletion(name=name, mechanism=i8(BY_NAME[mechanism].number)))
    if as_json:
        print_json({"user": name, "deleted": list(chosen)})
    else:
        say(f"User {name} cannot log in with {' and '.join(chosen)} any more.")


def _name(mechanism: int) -> str:
    return BY_NUMBER[mechanism].name if mechanism in BY_NUMBER else "unknown"


def _upsertion(name: str, mechanism: str, password: str, iterations: int) -> ScramCredentialUpsertion:
    salt = SystemRandom().randbytes(SALT_BYTES)
    return ScramCredentialUpsertion(
        name=name,
        mechanism=i8(BY_NAME[mechanism].number),
        iterations=i32(iterations),
        salt=salt,
        salted_password=BY_NAME[mechanism].salted_password(password, salt, iterations),
    )


def _alter(bootstrap: Bootstrap, change: _Change) -> None:
    is_deletion = isinstance(change, ScramCredentialDeletion)
    request = AlterUserScramCredentialsRequest(
        deletions=(change,) if isinstance(change, ScramCredentialDeletion) else (),
        upsertions=(change,) if isinstance(change, ScramCredentialUpsertion) else (),
    )
    for result in ask(bootstrap, request).results:
        about = f"User {change.name}, {_name(int(change.mechanism))}"
        if is_deletion and int(result.error_code) == ErrorCode.RESOURCE_NOT_FOUND:
            raise click.ClickException(f"{about}: there is no such password.")
        check(result.error_code, result.error_message, about=about)


def _mechanisms_of(bootstrap: Bootstrap, name: str) -> tuple[str, ...]:
    answer = ask(bootstrap, DescribeUserScramCredentialsRequest(users=(UserName(name=name),)))
    check(answer.error_code, answer.error_message)
    for one in answer.results:
        if int(one.error_code) == ErrorCode.RESOURCE_NOT_FOUND:
            raise click.ClickException(f"There is no user {name} with a password.")
        check(one.error_code, one.error_message, about=f"User {name}")
    return tuple(
        _name(int(info.mechanism))
        for one in answer.results
        for info in one.credential_infos
        if int(info.mechanism) in BY_NUMBER
    )
