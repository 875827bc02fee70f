"""The properties of a client, in librdkafka's names, as TLS and logins take them."""

from __future__ import annotations

import ssl
import tempfile
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


def tls_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    """Raises ClickException."""
    try:
        context = ssl.create_default_context(
            cafile=properties.get("ssl.ca.location"), cadata=properties.get("ssl.ca.pem")
        )
        _load_certificate(context, properties)
    except (OSError, ValueError) as error:
        raise click.ClickException(f"The certificates that were named cannot be used: {error}.") from error
    if properties.get("ssl.endpoint.identification.algorithm") == "none":
        context.check_hostname = False
    if properties.get("enable.ssl.certificate.verification") == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _load_certificate(context: ssl.SSLContext, properties: Mapping[str, str]) -> None:
    # Without any, OpenSSL would ask for it on the terminal.
    password = properties.get("ssl.key.password", "")
    location, chain = properties.get("ssl.certificate.location"), properties.get("ssl.certificate.pem")
    if location is not None:
        context.load_cert_chain(location, properties.get("ssl.key.location"), password=password)
    elif chain is not None:
        # OpenSSL, as Python has it, reads files only; this one is for its owner alone and is removed at once.
        with tempfile.NamedTemporaryFile() as file:
            file.write("\n".join((chain, properties.get("ssl.key.pem", ""))).encode())
            file.flush()
            context.load_cert_chain(file.name, password=password)


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
    raise click.ClickException(
        "This command needs a token that was issued: sasl.oauthbearer.token.endpoint.url=file:///… names its file."
    )
