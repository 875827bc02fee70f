"""`penstock token …`: delegation tokens (KIP-48, KIP-373).

The HMAC of a token is its password. Only `create` and `list --hmac` print it; other commands take it from a file or
from standard input.
"""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias

import click
from kio.schema.create_delegation_token.v3.request import CreatableRenewers, CreateDelegationTokenRequest
from kio.schema.describe_delegation_token.v3.request import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from kio.schema.expire_delegation_token.v2.request import ExpireDelegationTokenRequest
from kio.schema.renew_delegation_token.v2.request import RenewDelegationTokenRequest
from kio.static.primitive import i64Timedelta

from ..bootstrap import Bootstrap, bootstrap_options
from ..options import json_option
from ..terminal import print_json, print_table, say
from .principals import split_principal
from .questions import ask, check
from .secret_input import read_secret

_BROKER_DECIDES: Final = -1
_NOW: Final = -1
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_hmac_option = click.option(
    "--hmac-file", "path", metavar="FILE", help="The token's HMAC is its first line; - is standard input."
)


Principal: TypeAlias = tuple[str, str]
"""Type and name."""


def _principals(context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> tuple[Principal, ...]:
    return tuple(split_principal(context, parameter, text) for text in texts)


def _principal(context: click.Context, parameter: click.Parameter, text: str | None) -> Principal | None:
    return None if text is None else split_principal(context, parameter, text)


@click.group()
def token() -> None:
    """Create, list, renew and expire delegation tokens."""


@token.command()
@click.option("--owner", metavar="User:NAME", callback=_principal, help="Whose token it is; yours unless given.")
@click.option(
    "--renewer", "renewers", metavar="User:NAME", multiple=True, callback=_principals, help="May renew it, too."
)
@click.option(
    "--max-life-time-ms",
    type=click.IntRange(1),
    default=None,
    help="How long it can be renewed; as the broker has it unless given.",
)
@json_option
@bootstrap_options
def create(
    bootstrap: Bootstrap,
    owner: Principal | None,
    renewers: tuple[Principal, ...],
    max_life_time_ms: int | None,
    as_json: bool,
) -> None:
    """Create a token. Its id and HMAC are user name and password of a SCRAM login with tokenauth=true."""
    answer = ask(
        bootstrap,
        CreateDelegationTokenRequest(
            owner_principal_type=None if owner is None else owner[0],
            owner_principal_name=None if owner is None else owner[1],
            renewers=tuple(CreatableRenewers(principal_type=kind, principal_name=name) for kind, name in renewers),
            max_lifetime=_period(_BROKER_DECIDES if max_life_time_ms is None else max_life_time_ms),
        ),
    )
    check(answer.error_code)
    made = {
        "token_id": answer.token_id,
        "hmac": base64.b64encode(answer.hmac).decode(),
        "owner": f"{answer.principal_type}:{answer.principal_name}",
        "requester": f"{answer.token_requester_principal_type}:{answer.token_requester_principal_name}",
        "renewers": [f"{kind}:{name}" for kind, name in renewers],
        "issue_timestamp_ms": _ms(answer.issue_timestamp),
        "expiry_timestamp_ms": _ms(answer.expiry_timestamp),
        "max_timestamp_ms": _ms(answer.max_timestamp),
    }
    if as_json:
        print_json(made)
    else:
        print_table(("token id", "hmac", "owner", "expires", "latest"), [_row(made, has_hmac=True)])


@token.command("list")
@click.option("--owner", "owners", metavar="User:NAME", multiple=True, callback=_principals, help="Only theirs.")
@click.option("--hmac", "has_hmac", is_flag=True, help="Also the HMACs, which are passwords.")
@json_option
@bootstrap_options
def list_(bootstrap: Bootstrap, owners: tuple[Principal, ...], has_hmac: bool, as_json: bool) -> None:
    """List the tokens that you may see."""
    wanted = tuple(DescribeDelegationTokenOwner(principal_type=kind, principal_name=name) for kind, name in owners)
    answer = ask(bootstrap, DescribeDelegationTokenRequest(owners=wanted or None))
    check(answer.error_code)
    found = [
        {
            "token_id": one.token_id,
            **({"hmac": base64.b64encode(one.hmac).decode()} if has_hmac else {}),
            "owner": f"{one.principal_type}:{one.principal_name}",
            "requester": f"{one.token_requester_principal_type}:{one.token_requester_principal_name}",
            "renewers": [f"{renewer.principal_type}:{renewer.principal_name}" for renewer in one.renewers],
            "issue_timestamp_ms": int(one.issue_timestamp),
            "expiry_timestamp_ms": int(one.expiry_timestamp),
            "max_timestamp_ms": int(one.max_timestamp),
        }
        for one in sorted(answer.tokens, key=lambda one: str(one.token_id))
    ]
    if as_json:
        print_json({"tokens": found})
    elif found:
        hmac = ("hmac",) if has_hmac else ()
        print_table(("token id", *hmac, "owner", "expires", "latest"), [_row(one, has_hmac=has_hmac) for one in found])
    else:
        say("There are no such tokens.")


@token.command()
@_hmac_option
@click.option("--renew-time-period-ms", "period_ms", type=click.IntRange(1), default=None, help="For so long from now.")
@json_option
@bootstrap_options
def renew(bootstrap: Bootstrap, path: str | None, period_ms: int | None, as_json: bool) -> None:
    """Let a token live longer."""
    period = _period(_BROKER_DECIDES if period_ms is None else period_ms)
    answer = ask(bootstrap, RenewDelegationTokenRequest(hmac=_hmac(path), renew_period=period))
    check(answer.error_code)
    _print_expiry(answer.expiry_timestamp, as_json=as_json)


@token.command()
@_hmac_option
@click.option("--expiry-time-period-ms", "period_ms", type=click.IntRange(1), default=None, help="In so long from now.")
@json_option
@bootstrap_options
def expire(bootstrap: Bootstrap, path: str | None, period_ms: int | None, as_json: bool) -> None:
    """End a token, at once unless a time is given."""
    period = _period(_NOW if period_ms is None else period_ms)
    answer = ask(bootstrap, ExpireDelegationTokenRequest(hmac=_hmac(path), expiry_time_period=period))
    check(answer.error_code)
    _print_expiry(answer.expiry_timestamp, as_json=as_json)


def _hmac(path: str | None) -> bytes:
    text = read_secret("HMAC", path, is_new=False)
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise click.ClickException("The HMAC is not base64, as `penstock token create` prints it.") from None


def _period(period_ms: int) -> i64Timedelta:
    return i64Timedelta.parse(timedelta(milliseconds=period_ms))


def _print_expiry(expiry: datetime, *, as_json: bool) -> None:
    if as_json:
        print_json({"expiry_timestamp_ms": _ms(expiry)})
    else:
        say(f"The token ends at {_time(_ms(expiry))}.")


def _row(one: dict[str, Any], *, has_hmac: bool) -> tuple[object, ...]:
    hmac = (one["hmac"],) if has_hmac else ()
    return one["token_id"], *hmac, one["owner"], _time(one["expiry_timestamp_ms"]), _time(one["max_timestamp_ms"])


def _ms(time: datetime) -> int:
    return (time - _EPOCH) // timedelta(milliseconds=1)


def _time(timestamp_ms: int) -> str:
    return (_EPOCH + timedelta(milliseconds=timestamp_ms)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
