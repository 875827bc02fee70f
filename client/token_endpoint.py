"""Tokens that an issuer gives to programs: the grant of client credentials (RFC 6749, section 4.4).

Kafka: `ClientCredentialsJwtRetriever`. Properties are librdkafka's, which gets its tokens itself.
"""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from typing import IO, Final
from urllib.parse import quote, urlencode, urlsplit

from .client_tls import tls_context

URL: Final = "sasl.oauthbearer.token.endpoint.url"
_CLIENT_IDS: Final = ("sasl.oauthbearer.client.credentials.client.id", "sasl.oauthbearer.client.id")
_CLIENT_SECRETS: Final = ("sasl.oauthbearer.client.credentials.client.secret", "sasl.oauthbearer.client.secret")
_SCOPE: Final = "sasl.oauthbearer.scope"
_CA_NAMES: Final = {"https.ca.location": "ssl.ca.location", "https.ca.pem": "ssl.ca.pem"}
_TIMEOUT_S: Final = 10.0
_ANSWER_BYTES_MAX: Final = 256 * 1024


class TokenRefused(Exception):  # noqa: N818 - it is an answer, not a fault
    """There is no token. The message is a clause without secrets."""


class _NoRedirections(urllib.request.HTTPRedirectHandler):
    """The secret goes to whom the configuration names, and to no other."""

    def redirect_request(self, *_arguments: object) -> None:
        return None


def issued_token(properties: Mapping[str, str]) -> str:
    """Asks for one; blocks for ten seconds at most. Raises TokenRefused, or ClickException for certificates."""
    url = properties[URL]
    if urlsplit(url).scheme not in ("http", "https"):
        raise TokenRefused("its URL is neither http nor https")
    client, secret = _first(properties, _CLIENT_IDS), _first(properties, _CLIENT_SECRETS)
    form = {"grant_type": "client_credentials"} | ({"scope": properties[_SCOPE]} if properties.get(_SCOPE) else {})
    # Each in the form of a query before they are joined (RFC 6749, section 2.3.1).
    login = base64.b64encode(f"{quote(client, safe='')}:{quote(secret, safe='')}".encode()).decode()
    request = urllib.request.Request(
        url,
        urlencode(form).encode(),
        {"Authorization": f"Basic {login}", "Accept": "application/json"},
        method="POST",
    )
    issuer = {**properties, **{own: properties[name] for name, own in _CA_NAMES.items() if name in properties}}
    opener = urllib.request.build_opener(_NoRedirections(), urllib.request.HTTPSHandler(context=tls_context(issuer)))
    try:
        with opener.open(request, timeout=_TIMEOUT_S) as answer:
            return _token_of(answer)
    except urllib.error.HTTPError as error:
        with error:
            raise TokenRefused(f"it answers {error.code} {error.reason}") from None
    except urllib.error.URLError as error:
        raise TokenRefused(f"{error.reason}") from None
    except (OSError, HTTPException) as error:
        raise TokenRefused(str(error) or type(error).__name__) from None


def _first(properties: Mapping[str, str], names: tuple[str, ...]) -> str:
    found = next((properties[name] for name in names if properties.get(name)), None)
    if found is None:
        raise TokenRefused(f"{names[-1]} is not set")
    return found


def _token_of(answer: IO[bytes]) -> str:
    try:
        token = json.loads(answer.read(_ANSWER_BYTES_MAX))["access_token"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise TokenRefused("its answer has no access_token") from None
    # It becomes a part of a message of SASL, and of a header of HTTP.
    if not (isinstance(token, str) and token and token.isascii() and token.isprintable() and " " not in token):
        raise TokenRefused("its access_token is no token")
    return token
