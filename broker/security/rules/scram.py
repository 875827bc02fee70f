"""SCRAM (RFC 5802, RFC 7677): a client shows that it knows a password, and the server that it has the credential.

    client → server   n,[a=authorization id],n=user,r=client nonce[,extensions]
    server → client   r=client nonce + server nonce,s=salt,i=iterations
    client → server   c=base64 of the header,r=both nonces[,extensions],p=proof
    server → client   v=signature

Kafka: `ScramSaslServer`. A user without a credential gets a salt and iterations of his own and is refused at the proof,
as for a wrong password: nothing says which names exist (`decoy_credentials.py`). Of extensions `tokenauth=true` is
known (KIP-48): the user is a delegation token then. The library `scramp` knows neither these nor an authorization id.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from collections.abc import Callable
from typing import Final, TypeAlias

from msgspec import Struct

from ....protocol.scram import ScramMechanism
from ....quorum.metadata.security_image import ScramCredential
from .decoy_credentials import MakeDecoy
from .sasl_exchange import AuthenticationFailed, Proved

NONCE_BYTES: Final = 20
"""160 bits, and no padding in base64's form."""
_CLIENT_FIRST = re.compile(
    r"(?P<header>n,(?:a=(?P<authorization_id>(?:[^=,\0]|=2C|=3D)+))?,)"
    r"(?P<bare>n=(?P<user>(?:[^=,\0]|=2C|=3D)+),r=(?P<nonce>[!-+\--~]+)(?P<extensions>(?:,[A-Za-z]+=[^,\0]+)*))"
)
_CLIENT_FINAL = re.compile(
    r"(?P<without_proof>c=(?P<header>[A-Za-z0-9/+=]+),r=(?P<nonce>[!-+\--~]+)(?:,[A-Za-z]+=[^,\0]+)*)"
    r",p=(?P<proof>[A-Za-z0-9/+=]+)"
)
_ANOTHER_USER: Final = "Authentication failed: Client requested an authorization id that is different from username"


class ScramIdentity(Struct, frozen=True, kw_only=True):
    """Who a client is once it has proved that it knows the password."""

    principal: str
    credential: ScramCredential
    is_by_token: bool = False
    expiry_ms: int | None = None
    """Of a delegation token, in wall-clock time."""


FindIdentity: TypeAlias = Callable[[ScramMechanism, str, bool], ScramIdentity | None]
"""Of a user by his name or, with True, of a delegation token by its id."""


class ScramExchange:
    """It waits first for the client's name and nonce, then for its proof."""

    def __init__(
        self,
        mechanism: ScramMechanism,
        find: FindIdentity,
        random_bytes: Callable[[int], bytes],
        make_decoy: MakeDecoy,
    ) -> None:
        """`make_decoy` makes what is shown of those whom `find` does not find."""
        self._mechanism = mechanism
        self._find = find
        self._random_bytes = random_bytes
        self._make_decoy = make_decoy
        self._identity: ScramIdentity | None = None
        self._credential: ScramCredential | None = None
        self._header = b""
        self._client_first_bare = ""
        self._server_first = ""
        self._nonce = ""

    def step(self, token: bytes) -> bytes | Proved:
        try:
            message = token.decode()
        except UnicodeDecodeError:
            raise AuthenticationFailed("a message of SCRAM is not UTF-8") from None
        return self._begin(message) if self._credential is None else self._finish(self._credential, message)

    def _begin(self, message: str) -> bytes:
        match = _CLIENT_FIRST.fullmatch(message)
        if match is None:
            raise AuthenticationFailed("Invalid SCRAM client first message format")
        name = _unescaped(match["user"])
        authorization_id = match["authorization_id"]
        if authorization_id is not None and _unescaped(authorization_id) != name:
            raise AuthenticationFailed(_ANOTHER_USER, _ANOTHER_USER)
        is_token = "tokenauth=true" in match["extensions"].split(",")
        self._identity = self._find(self._mechanism, name, is_token)
        decoy = self._make_decoy(self._mechanism, name, is_token)
        credential = self._credential = decoy if self._identity is None else self._identity.credential
        self._header = match["header"].encode()
        self._client_first_bare = match["bare"]
        self._nonce = match["nonce"] + base64.b64encode(self._random_bytes(NONCE_BYTES)).decode().rstrip("=")
        salt = base64.b64encode(credential.salt).decode()
        self._server_first = f"r={self._nonce},s={salt},i={credential.iterations}"
        return self._server_first.encode()

    def _finish(self, credential: ScramCredential, message: str) -> Proved:
        match = _CLIENT_FINAL.fullmatch(message)
        if match is None:
            raise AuthenticationFailed("Invalid SCRAM client final message format")
        if _decoded(match["header"]) != self._header:
            raise AuthenticationFailed("the final message of SCRAM has another header than the first")
        if not hmac.compare_digest(match["nonce"], self._nonce):
            raise AuthenticationFailed("Invalid client nonce in the final client message.")
        mechanism = self._mechanism
        signed = f"{self._client_first_bare},{self._server_first},{match['without_proof']}".encode()
        signature = mechanism.hmac(credential.stored_key, signed)
        proof = _decoded(match["proof"])
        if len(proof) != len(signature):
            raise AuthenticationFailed(f"a proof of {mechanism.name} has {len(signature)} bytes, not {len(proof)}")
        client_key = bytes(one ^ other for one, other in zip(proof, signature, strict=True))
        is_right = hmac.compare_digest(mechanism.hash(client_key), credential.stored_key)
        if self._identity is None:
            raise AuthenticationFailed("the user or token has no credential")
        if not is_right:
            raise AuthenticationFailed("Invalid client credentials")
        server_signature = base64.b64encode(mechanism.hmac(credential.server_key, signed))
        return Proved(
            principal=self._identity.principal,
            token=b"v=" + server_signature,
            is_by_token=self._identity.is_by_token,
            expiry_ms=self._identity.expiry_ms,
        )


def _unescaped(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise AuthenticationFailed("a message of SCRAM has base64 that is not valid") from None
