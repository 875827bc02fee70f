"""SCRAM's exchange: the RFC's own, a client's with any names, and every way to get it wrong."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.broker.security.rules.decoy_credentials import DecoyCredentials
from penstock.broker.security.rules.sasl_exchange import AuthenticationFailed, Proved
from penstock.broker.security.rules.scram import ScramExchange, ScramIdentity
from penstock.protocol.scram import SCRAM_SHA_256, SCRAM_SHA_512, ScramMechanism
from penstock.quorum.metadata.security_image import ScramCredential

PASSWORDS = {"user": "pencil", "a,b=c": "p", "ä": "wörd"}
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")


def credential(mechanism: ScramMechanism, password: str) -> ScramCredential:
    salted = mechanism.salted_password(password, SALT, 4096)
    return ScramCredential(
        salt=SALT,
        stored_key=mechanism.stored_key(salted),
        server_key=mechanism.server_key(salted),
        iterations=4096,
    )


CREDENTIALS = {
    (mechanism.name, name): credential(mechanism, password)
    for mechanism in (SCRAM_SHA_256, SCRAM_SHA_512)
    for name, password in PASSWORDS.items()
}


def find(mechanism: ScramMechanism, name: str, is_token: bool) -> ScramIdentity | None:
    if is_token:
        found = CREDENTIALS.get((mechanism.name, "user")) if name == "token" else None
        return None if found is None else ScramIdentity(principal="User:owner", credential=found, expiry_ms=77)
    found = CREDENTIALS.get((mechanism.name, name))
    return None if found is None else ScramIdentity(principal=f"User:{name}", credential=found)


def exchange(mechanism: ScramMechanism = SCRAM_SHA_256) -> ScramExchange:
    return ScramExchange(mechanism, find, lambda count: bytes(count), DecoyCredentials(b"decoys", dict).make)


def escaped(name: str) -> str:
    return name.replace("=", "=3D").replace(",", "=2C")


class Client:
    """A client by the RFC, written apart from the server."""

    def __init__(
        self, mechanism: ScramMechanism, name: str, password: str, *, header: str = "n,,", more: str = ""
    ) -> None:
        self.digest = mechanism.digest
        self.password = password
        self.header = header
        self.bare = f"n={escaped(name)},r=client{more}"

    @property
    def first(self) -> bytes:
        return f"{self.header}{self.bare}".encode()

    def final(self, server_first: bytes) -> bytes:
        fields = dict(part.split("=", 1) for part in server_first.decode().split(","))
        salt = base64.b64decode(fields["s"])
        salted = hashlib.pbkdf2_hmac(self.digest, self.password.encode(), salt, int(fields["i"]))
        client_key = hmac.digest(salted, b"Client Key", self.digest)
        stored_key = hashlib.new(self.digest, client_key).digest()
        without_proof = f"c={base64.b64encode(self.header.encode()).decode()},r={fields['r']}"
        self.signed = f"{self.bare},{server_first.decode()},{without_proof}".encode()
        self.salted = salted
        signature = hmac.digest(stored_key, self.signed, self.digest)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def server_final(self) -> bytes:
        server_key = hmac.digest(self.salted, b"Server Key", self.digest)
        return b"v=" + base64.b64encode(hmac.digest(server_key, self.signed, self.digest))


def test_the_keys_of_rfc_7677() -> None:
    """Of the example there: the proof and the signature that its nonces make."""
    keys = CREDENTIALS["SCRAM-SHA-256", "user"]
    signed = (
        b"n=user,r=rOprNGfwEbeRWgbNEkqO,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    )
    proof = base64.b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    signature = SCRAM_SHA_256.hmac(keys.stored_key, signed)
    assert SCRAM_SHA_256.hash(bytes(a ^ b for a, b in zip(proof, signature, strict=True))) == keys.stored_key
    server_signature = base64.b64encode(SCRAM_SHA_256.hmac(keys.server_key, signed))
    assert server_signature == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


@pytest.mark.parametrize("mechanism", [SCRAM_SHA_256, SCRAM_SHA_512])
@pytest.mark.parametrize("name", list(PASSWORDS))
@pytest.mark.parametrize("has_authorization_id", [False, True])
def test_who_knows_the_password_is_proved_and_so_is_the_server(
    mechanism: ScramMechanism, name: str, has_authorization_id: bool
) -> None:
    header = f"n,a={escaped(name)}," if has_authorization_id else "n,,"
    client, server = Client(mechanism, name, PASSWORDS[name], header=header, more=",x=y"), exchange(mechanism)
    answer = server.step(client.first)
    assert isinstance(answer, bytes)
    outcome = server.step(client.final(answer))
    assert outcome == Proved(principal=f"User:{name}", token=client.server_final())


def test_a_token_is_proved_as_its_owner_until_it_ends() -> None:
    client, server = Client(SCRAM_SHA_256, "token", "pencil", more=",tokenauth=true"), exchange()
    answer = server.step(client.first)
    assert isinstance(answer, bytes)
    outcome = server.step(client.final(answer))
    assert isinstance(outcome, Proved)
    assert (outcome.principal, outcome.expiry_ms) == ("User:owner", 77)


@pytest.mark.parametrize(
    ("name", "password", "more"),
    [
        ("user", "Pencil", ""),
        ("nouser", "pencil", ""),
        ("token", "pencil", ""),
        ("user", "pencil", ",tokenauth=true"),
    ],
)
def test_a_wrong_password_and_an_unknown_name_look_the_same(name: str, password: str, more: str) -> None:
    client, server = Client(SCRAM_SHA_256, name, password, more=more), exchange()
    answer = server.step(client.first)
    assert isinstance(answer, bytes)
    assert answer.endswith(b",i=4096")
    with pytest.raises(AuthenticationFailed) as refused:
        server.step(client.final(answer))
    # The client is told Kafka's sentence that tells nothing.
    assert refused.value.message is None


def test_an_unknown_name_has_the_same_salt_each_time_and_another_than_others() -> None:
    answers = [exchange().step(Client(SCRAM_SHA_256, name, "").first) for name in ("x", "x", "y")]
    assert answers[0] == answers[1] != answers[2]


def test_another_authorization_id_is_refused_in_kafkas_words() -> None:
    with pytest.raises(AuthenticationFailed) as refused:
        exchange().step(b"n,a=root,n=user,r=client")
    assert refused.value.message == (
        "Authentication failed: Client requested an authorization id that is different from username"
    )


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,",
        b"n,,n=user",
        b"n,,n=user,r=",
        b"n,,n=,r=client",
        b"n,,n=us=er,r=client",
        b"n,,n=us\0er,r=client",
        b"n,,r=client,n=user",
        b"y,,n=user,r=client",
        b"p=tls-unique,,n=user,r=client",
        b"n,,m=x,n=user,r=client",
        b"n,,n=user,r=cli ent",
        b"n,,n=user,r=client,x",
        b"n,,n=user,r=client\n",
        b"\xff",
    ],
)
def test_a_first_message_that_is_none_is_refused(message: bytes) -> None:
    with pytest.raises(AuthenticationFailed):
        exchange().step(message)


@pytest.mark.parametrize(
    "bend",
    [
        lambda final: final.replace(b"r=client", b"r=other"),
        lambda final: final.replace(b",p=", b"x,p="),
        lambda final: final.replace(b"c=biws", b"c=eSws"),
        lambda final: final.replace(b"c=biws", b"c=biw"),
        lambda final: final[: final.index(b",p=")],
        lambda final: final[: final.index(b",p=")] + b",p=",
        lambda final: final[: final.index(b",p=")] + b",p=AAAA",
        lambda final: final[:-4] + b"AAA=",
        lambda final: final[:0],
        lambda final: final + b"\xff",
    ],
)
def test_a_final_message_that_is_bent_is_refused(bend: Callable[[bytes], bytes]) -> None:
    client, server = Client(SCRAM_SHA_256, "user", "pencil"), exchange()
    answer = server.step(client.first)
    assert isinstance(answer, bytes)
    with pytest.raises(AuthenticationFailed):
        server.step(bend(client.final(answer)))


def test_every_bit_of_the_proof_counts() -> None:
    # Nonces are the same each time, and so is the answer.
    client = Client(SCRAM_SHA_256, "user", "pencil")
    answer = exchange().step(client.first)
    assert isinstance(answer, bytes)
    start, proof = client.final(answer).split(b",p=")
    for bit in range(256):
        flipped = (int.from_bytes(base64.b64decode(proof), "big") ^ (1 << bit)).to_bytes(32, "big")
        server = exchange()
        server.step(client.first)
        with pytest.raises(AuthenticationFailed):
            server.step(start + b",p=" + base64.b64encode(flipped))


def test_nonces_of_the_server_are_its_own_and_a_proof_serves_once() -> None:
    drawn = iter(range(256))
    servers = [
        ScramExchange(
            SCRAM_SHA_256, find, lambda count: bytes([next(drawn)]) * count, DecoyCredentials(b"decoys", dict).make
        )
        for _ in range(2)
    ]
    client = Client(SCRAM_SHA_256, "user", "pencil")
    first, second = (server.step(client.first) for server in servers)
    assert isinstance(first, bytes)
    assert first != second
    final = client.final(first)
    assert isinstance(servers[0].step(final), Proved)
    with pytest.raises(AuthenticationFailed):
        servers[1].step(final)


@pytest.mark.thorough
@settings(max_examples=200)
@given(st.lists(st.one_of(st.binary(max_size=60), st.sampled_from([b"n,,n=user,r=client", b"c=biws,r=client,p=AAAA"]))))
def test_messages_in_any_order_prove_nothing(messages: list[bytes]) -> None:
    server = exchange()
    for message in messages:
        try:
            assert isinstance(server.step(message), bytes)
        except AuthenticationFailed:
            return
