"""How a client logs in by its properties, in librdkafka's names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from . import clock
from .client_properties import DELEGATION_TOKEN, MECHANISM, PASSWORD, TOKEN_FILE, UNSECURED_SUBJECT, USERNAME

if TYPE_CHECKING:
    from .sasl_login import SaslLogin

_TOKEN_LIFETIME_S: Final = 300
"""Of a token that does not say when it ends: then it is read again."""


def sasl_login(properties: Mapping[str, str]) -> SaslLogin:
    """Raises ClickException."""
    # It brings the classes of messages, which commands that ask with librdkafka alone do without.
    from .sasl_login import SaslLogin

    mechanism = properties[MECHANISM]
    if mechanism == "OAUTHBEARER":
        return SaslLogin(mechanism=mechanism, secret=_token(properties))
    return SaslLogin(
        mechanism=mechanism,
        username=properties[USERNAME],
        secret=properties[PASSWORD],
        is_delegation_token=DELEGATION_TOKEN in properties,
    )


def librdkafka_login(properties: Mapping[str, str]) -> dict[str, Any]:
    """The properties that librdkafka takes, with a callback for a token that it cannot get itself.

    Raises ClickException.
    """
    if DELEGATION_TOKEN in properties:
        raise click.ClickException("This command asks with librdkafka, which cannot log in with a delegation token.")
    taken: dict[str, Any] = {
        name: value for name, value in properties.items() if name not in (TOKEN_FILE, UNSECURED_SUBJECT)
    }
    if len(taken) < len(properties) and properties.get(MECHANISM) == "OAUTHBEARER":
        # What is wrong with the token is said here, and not by a callback that librdkafka asks again and again.
        _token(properties)
        taken["oauth_cb"] = lambda _config: _token_and_expiry(properties)
    return taken


def _token_and_expiry(properties: Mapping[str, str]) -> tuple[str, float]:
    from .sasl_login import expiry_s

    token = _token(properties)
    return token, float(expiry_s(token) or clock.now_ms() // 1000 + _TOKEN_LIFETIME_S)


def _token(properties: Mapping[str, str]) -> str:
    from .sasl_login import unsecured_token

    if TOKEN_FILE in properties:
        path = properties[TOKEN_FILE]
        try:
            return Path(path).read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not a token"
            raise click.ClickException(f"The token in {path} cannot be read: {reason}.") from None
    if UNSECURED_SUBJECT in properties:
        return unsecured_token(properties[UNSECURED_SUBJECT], now_s=clock.now_ms() // 1000)
    # It brings HTTP.
    from .token_endpoint import URL, TokenRefused, issued_token

    if URL not in properties:
        raise click.ClickException(
            f"{MECHANISM} is OAUTHBEARER, so {URL} must name the issuer, or the file, of a token."
        )
    try:
        return issued_token(properties)
    except TokenRefused as error:
        raise click.ClickException(f"The issuer that {URL} names gives no token: {error}.") from None
