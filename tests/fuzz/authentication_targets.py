"""What decides who a client is: certificates, JAAS values, tokens of PLAIN, SCRAM and OAUTHBEARER."""

from __future__ import annotations

import contextlib
from functools import cache
from typing import Final

from tokens import ISSUER, NOW_S, ec_key, jwk, key_set, token, unsigned

from penstock.broker.configuration.bearer_config import BearerConfig
from penstock.broker.configuration.principal_mapping import parse_principal_mapping
from penstock.broker.network.rules.distinguished_name import subject_of
from penstock.broker.security.rules.authorization_header import UserAndPassword, read_authorization
from penstock.broker.security.rules.bearer import BearerExchange, VerifyToken
from penstock.broker.security.rules.decoy_credentials import DecoyCredentials
from penstock.broker.security.rules.plain import PlainExchange, PlainUsers
from penstock.broker.security.rules.sasl_exchange import AuthenticationFailed, Proved
from penstock.broker.security.rules.scram import ScramExchange, ScramIdentity
from penstock.broker.security.rules.token_verifier import read_key_set, token_verifier
from penstock.protocol.errors import ConfigError, CorruptData
from penstock.protocol.jaas import parse_jaas
from penstock.protocol.scram import SCRAM_SHA_256, ScramMechanism
from penstock.quorum.metadata.security_image import ScramCredential

_RULES: Final = parse_principal_mapping("rules", r"RULE:^CN=((\w|[., ])+),O=.*$/$1/L, RULE:(.*)a.*$/$1$1/, DEFAULT")
_SECRET: Final = "never-shown-7"
_USERS: Final = PlainUsers({"user_alice": "hunter2"})
# Of no password at all.
_CREDENTIAL: Final = ScramCredential(salt=b"salt", stored_key=bytes(32), server_key=bytes(32), iterations=4096)


def read_certificate(data: bytes) -> None:
    """DER, and the rules that make a principal of its subject."""
    with contextlib.suppress(CorruptData):
        name = _RULES.name_of(subject_of(data))
        assert isinstance(name, str), "the last rule takes every name"


def certificate_seeds() -> list[bytes]:
    # A certificate's fields up to the subject, with the names that differ most.
    names = [
        "300f310d300b06035504030c04f09f9880",
        "3033310a3008060355040a0c01613125300806035504030c01783008060355040b0c0179300f060a0992268993f22c6401010c017a",
        "30223114301206092a864886f70d01090116056140622e63310a300806035504030c0178",
        "30143112301006035504030c092c3d2b3c3e233b225c",
    ]
    return [_certificate(bytes.fromhex(name)) for name in names]


def _certificate(subject: bytes) -> bytes:
    fields = bytes.fromhex("a003020102" + "020101" + "3000" + "3000" + "3000") + subject + bytes.fromhex("3000")
    signed = bytes((0x30, len(fields))) + fields
    return bytes((0x30, len(signed))) + signed


def read_jaas(data: bytes) -> None:
    """A value, which is read or refused with a sentence that does not quote it."""
    sentence = ""
    try:
        parse_jaas("sasl.jaas.config", data.decode("utf-8", "replace"))
    except ConfigError as error:
        sentence = str(error)
    assert _SECRET not in sentence


def jaas_seeds() -> list[bytes]:
    module = b"org.apache.kafka.common.security.plain.PlainLoginModule"
    return [
        module + b" required user_alice=\"never-shown-7\" user_bob='x';",
        module + b' optional // comment\n/* more */ a = "\\"\\101" ;',
        b"never-shown-7",
        b'a required b="never-shown-7',
    ]


def read_plain(data: bytes) -> None:
    """A token, which proves alice only with her password."""
    reason = ""
    try:
        assert PlainExchange(_USERS).step(data).principal == "User:alice"
        assert data in (b"\0alice\0hunter2", b"alice\0alice\0hunter2")
    except AuthenticationFailed as failure:
        reason = failure.reason
    assert "hunter2" not in reason


def plain_seeds() -> list[bytes]:
    return [b"\0alice\0hunter2", b"alice\0alice\0hunter2", b"\0alice\0wrong", b"\0\0\0", b""]


def _find(_mechanism: ScramMechanism, name: str, _is_token: bool) -> ScramIdentity | None:
    return ScramIdentity(principal=f"User:{name}", credential=_CREDENTIAL) if name == "alice" else None


def read_scram(data: bytes) -> None:
    """Messages, one a line, none of which can prove anything."""
    exchange = ScramExchange(SCRAM_SHA_256, _find, bytes, DecoyCredentials(b"decoys", dict).make)
    with contextlib.suppress(AuthenticationFailed):
        for message in data.split(b"\n"):
            assert not isinstance(exchange.step(message), Proved)


def scram_seeds() -> list[bytes]:
    nonce = b"client" + b"A" * 27
    proof = b"c=biws,r=" + nonce + b",p=" + b"A" * 43 + b"="
    return [
        b"n,,n=alice,r=client\n" + proof,
        b"n,a=alice,n=alice,r=client,tokenauth=true\n" + proof,
        b"n,,n=a=2Cb=3D,r=client,x=y\n" + proof,
    ]


@cache
def _verifier() -> VerifyToken:
    config = BearerConfig(
        jwks_url="file:///keys",
        refresh_ms=1,
        backoff_ms=1,
        backoff_ms_max=1,
        audiences=("kafka",),
        issuer=ISSUER,
        scope_claim="scope",
        sub_claim="sub",
        skew_ms=0,
    )
    keys = read_key_set(key_set(jwk(ec_key(), "one")))
    return token_verifier(config, lambda: keys, lambda: None, lambda: 1000 * NOW_S)


def read_bearer(data: bytes) -> None:
    """A token, which proves alice only as the issuer has signed it."""
    with contextlib.suppress(AuthenticationFailed):
        outcome = BearerExchange(_verifier()).step(data)
        assert not isinstance(outcome, Proved) or outcome.principal == "User:alice"


def bearer_seeds() -> list[bytes]:
    tokens = [
        token(ec_key(), "one", "ES256"),
        token(ec_key(), None, "ES256"),
        token(ec_key(), "one", "ES256", exp=NOW_S),
        unsigned(sub="root"),
    ]
    return [f"n,,\x01auth=Bearer {one}\x01\x01".encode() for one in tokens]


def read_header(data: bytes) -> None:
    """A header as HTTP hands it over: whatever is read of it can be sent on, and a refusal does not quote it."""
    header = data.decode("utf-8", "surrogateescape")
    reason = ""
    try:
        shown = read_authorization(header)
        if isinstance(shown, UserAndPassword):
            assert b"\0" not in f"{shown.name}{shown.password}".encode()
            assert ":" not in shown.name
        else:
            assert shown.token in header
            assert not set(shown.token.encode()) & set(b"\0\1 ,")
    except AuthenticationFailed as failure:
        reason = failure.reason
    assert "aHVudGVyMg" not in reason
    assert "hunter2" not in reason


def header_seeds() -> list[bytes]:
    return [
        b"Basic YWxpY2U6aHVudGVyMg==",
        b"basic  YWxpY2U6aHVudGVyMg== ",
        b"Bearer aHVudGVyMg.eyJzdWIiOiJ4In0.c2ln",
        b"Bearer aHVudGVyMg==",
        b"Digest hunter2",
        b"Basic \xff\xfe",
    ]


def read_keys(data: bytes) -> None:
    """A key set, which an issuer or a file may have broken."""
    with contextlib.suppress(ValueError):
        assert read_key_set(data)


def key_seeds() -> list[bytes]:
    return [key_set(jwk(ec_key(), "one"), jwk(ec_key(), None, use="sig", alg="ES256")), b'{"keys": []}']
