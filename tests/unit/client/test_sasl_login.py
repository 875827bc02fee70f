"""A client's side of SASL, with a broker that answers by the rules and one that does not."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.broker.security.rules.decoy_credentials import DecoyCredentials
from penstock.broker.security.rules.sasl_exchange import AuthenticationFailed, Proved
from penstock.broker.security.rules.scram import ScramExchange, ScramIdentity
from penstock.client.sasl_login import SaslLogin, authenticate, expiry_s, unsecured_token
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.scram import BY_NAME
from penstock.quorum.metadata.security_image import ScramCredential


class Broker:
    """Answers a connection's calls with `answers`, one for each token."""

    peer = "broker:9092"

    def __init__(self, mechanism: str, *answers: bytes | int) -> None:
        self.mechanism = mechanism
        self.answers = list(answers)
        self.tokens: list[bytes] = []

    async def call(self, request: Any) -> Any:
        if hasattr(request, "mechanism"):
            is_offered = request.mechanism == self.mechanism
            code = ErrorCode.NONE if is_offered else ErrorCode.UNSUPPORTED_SASL_MECHANISM
            return SimpleNamespace(error_code=int(code), mechanisms=(self.mechanism,))
        self.tokens.append(request.auth_bytes)
        answer = self.answer(request.auth_bytes)
        if isinstance(answer, int):
            return SimpleNamespace(error_code=answer, error_message=None, auth_bytes=b"")
        return SimpleNamespace(error_code=0, error_message=None, auth_bytes=answer)

    def answer(self, token: bytes) -> bytes | int:
        assert token
        return self.answers.pop(0)


class ScramBroker(Broker):
    """By the server's rules, with one user, who is a delegation token if so."""

    def __init__(self, mechanism: str, password: str, *, is_token: bool = False) -> None:
        super().__init__(mechanism)
        made = BY_NAME[mechanism]
        salted = made.salted_password(password, b"salt", 4096)
        credential = ScramCredential(
            salt=b"salt", stored_key=made.stored_key(salted), server_key=made.server_key(salted), iterations=4096
        )
        users = {("a=d,a", is_token): ScramIdentity(principal="User:ada", credential=credential)}
        self.exchange = ScramExchange(
            made, lambda _, name, token: users.get((name, token)), bytes, DecoyCredentials(b"decoy", dict).make
        )

    def answer(self, token: bytes) -> bytes | int:
        try:
            answer = self.exchange.step(token)
        except AuthenticationFailed:
            return int(ErrorCode.SASL_AUTHENTICATION_FAILED)
        return answer.token if isinstance(answer, Proved) else answer


def log_in(broker: Broker, login: SaslLogin) -> None:
    asyncio.run(authenticate(broker, login))  # type: ignore[arg-type]


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("is_token", [False, True])
def test_scram_proves_the_password_and_never_sends_it(mechanism: str, is_token: bool) -> None:
    broker = ScramBroker(mechanism, "pencil-pencil", is_token=is_token)
    login = SaslLogin(mechanism=mechanism, username="a=d,a", secret="pencil-pencil", is_delegation_token=is_token)
    log_in(broker, login)
    assert len(broker.tokens) == 2
    assert not any(b"pencil" in token for token in broker.tokens)
    with pytest.raises(KafkaError, match="broker:9092 refuses the login"):
        log_in(ScramBroker(mechanism, "another", is_token=is_token), login)


@pytest.mark.parametrize(
    ("forged", "sentence"),
    [
        (lambda _: b"r=other,s=c2FsdA==,i=4096", "its nonce is not one of this exchange"),
        (lambda nonce: b"r=" + nonce + b",s=c2FsdA==,i=4096", "its nonce is not one of this exchange"),
        (lambda nonce: b"r=" + nonce + b"x,s=c2FsdA==", "no salt or no count of iterations"),
        (lambda nonce: b"r=" + nonce + b"x,s=*,i=4096", "no salt or no count of iterations"),
        (lambda nonce: b"r=" + nonce + b"x,s=c2FsdA==,i=1", "it wants 1 iterations, which are not 4096 to 1000000"),
        (lambda nonce: b"r=" + nonce + b"x,s=c2FsdA==,i=2000000000", "it wants 2000000000 iterations"),
        (lambda nonce: b"r=" + nonce + b"x,s=c2FsdA==,i=4096", "its signature is wrong"),
        (lambda _: b"\xff", "no salt or no count of iterations"),
    ],
)
def test_a_broker_that_does_not_know_the_password_is_not_believed(
    forged: Callable[[bytes], bytes], sentence: str
) -> None:
    """RFC 5802: the client checks nonce and signature of the server. A huge count would only keep it busy."""

    class Impostor(Broker):
        def answer(self, token: bytes) -> bytes | int:
            if len(self.tokens) == 1:
                return forged(token.partition(b"r=")[2])
            return b"v=" + base64.b64encode(bytes(32))

    with pytest.raises(KafkaError, match="broker:9092 did not prove that it knows the password") as raised:
        log_in(Impostor("SCRAM-SHA-256"), SaslLogin(mechanism="SCRAM-SHA-256", username="ada", secret="x"))
    assert raised.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED
    assert sentence in str(raised.value)


def test_plain() -> None:
    broker = Broker("PLAIN", b"")
    log_in(broker, SaslLogin(mechanism="PLAIN", username="ada", secret="päss"))
    assert broker.tokens == ["\0ada\0päss".encode()]


def test_a_refused_login_has_the_code_of_the_broker() -> None:
    broker = Broker("PLAIN", int(ErrorCode.SASL_AUTHENTICATION_FAILED))
    login = SaslLogin(mechanism="PLAIN", username="ada", secret="hunter2")
    with pytest.raises(KafkaError, match="broker:9092 refuses the login") as raised:
        log_in(broker, login)
    assert raised.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED
    assert "hunter2" not in f"{login!r} {raised.value}"


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "GSSAPI"])
def test_a_mechanism_that_one_side_does_not_have(mechanism: str) -> None:
    with pytest.raises(KafkaError) as raised:
        log_in(Broker("PLAIN"), SaslLogin(mechanism=mechanism, username="ada", secret="x"))
    assert str(raised.value) == (
        f"UNSUPPORTED_SASL_MECHANISM: broker:9092 does not take {mechanism} on this listener; its mechanisms are: "
        "PLAIN."
    )
    with pytest.raises(KafkaError, match="GSSAPI is not one of the mechanisms PLAIN, SCRAM-SHA-256"):
        log_in(Broker("GSSAPI"), SaslLogin(mechanism="GSSAPI", username="ada", secret="x"))


def test_a_token() -> None:
    broker = Broker("OAUTHBEARER", b"")
    log_in(broker, SaslLogin(mechanism="OAUTHBEARER", secret="a.b.c"))
    assert broker.tokens == [b"n,,\x01auth=Bearer a.b.c\x01\x01"]
    with pytest.raises(KafkaError, match="refuses the token"):
        log_in(
            Broker("OAUTHBEARER", b'{"status":"invalid_token"}', b""), SaslLogin(mechanism="OAUTHBEARER", secret="x")
        )
    # RFC 7628, section 3.2.3: the client asks for the end of a failed exchange.
    broker = Broker("OAUTHBEARER", b'{"status":"invalid_token"}', int(ErrorCode.SASL_AUTHENTICATION_FAILED))
    with pytest.raises(KafkaError):
        log_in(broker, SaslLogin(mechanism="OAUTHBEARER", secret="x"))
    assert broker.tokens[-1] == b"\x01"


def test_an_unsecured_token_says_whom_it_names_and_when_it_ends() -> None:
    token = unsecured_token("ada", now_s=1000)
    header, claims, signature = token.split(".")
    assert json.loads(base64.urlsafe_b64decode(header + "==")) == {"alg": "none"}
    assert json.loads(base64.urlsafe_b64decode(claims + "==="))["sub"] == "ada"
    assert (signature, expiry_s(token)) == ("", 4600)


@pytest.mark.parametrize("token", ["opaque", "a.b.c", "e30.e30.", "e30.bm8.x"])
def test_a_token_that_does_not_say_when_it_ends(token: str) -> None:
    assert expiry_s(token) is None
