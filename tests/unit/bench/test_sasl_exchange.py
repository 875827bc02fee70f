"""The client of `bench --only sasl` proves itself to the broker's own exchange, and takes no broker's word unproved."""

from __future__ import annotations

from struct import Struct

import pytest

from penstock.bench.sasl_exchange import Exchange, PlainLogin, ScramLogin
from penstock.bench.wire import RequestRefusedError
from penstock.broker.security.rules.decoy_credentials import DecoyCredentials
from penstock.broker.security.rules.sasl_exchange import Proved
from penstock.broker.security.rules.scram import ScramExchange, ScramIdentity
from penstock.protocol.messages import decode_header
from penstock.protocol.scram import BY_NAME, ITERATIONS_MIN, ScramMechanism
from penstock.quorum.metadata.security_image import ScramCredential

SIZE = 4
HANDSHAKE, AUTHENTICATE = (17, 1), (36, 1)
SHA_512 = BY_NAME["SCRAM-SHA-512"]


class Broker:
    """Answers of both requests as bytes; the steps of SCRAM are those of the broker itself."""

    def __init__(self, password: str, *, refused_request: int | None = None, is_honest: bool = True) -> None:
        salted = SHA_512.salted_password(password, b"salt", ITERATIONS_MIN)
        credential = ScramCredential(
            salt=b"salt",
            stored_key=SHA_512.stored_key(salted),
            server_key=SHA_512.server_key(salted) if is_honest else bytes(64),
            iterations=ITERATIONS_MIN,
        )
        self.identity = ScramIdentity(principal="User:alice", credential=credential)
        self.refused_request = refused_request
        self.requests: list[tuple[int, int]] = []
        self.messages: list[bytes] = []

    def run(self, exchange: Exchange, scram: bool = True) -> None:
        """Until the client is content, or raises."""
        steps = ScramExchange(SHA_512, self.find, lambda count: bytes(count), DecoyCredentials(b"decoys", dict).make)
        request = next(exchange)
        while True:
            header = decode_header(request[SIZE:])
            assert int.from_bytes(request[:SIZE]) == len(request) - SIZE
            self.requests.append((header.api_key, header.api_version))
            body = request[SIZE + header.body_offset :]
            is_refused = len(self.requests) - 1 == self.refused_request
            if header.api_key == HANDSHAKE[0]:
                answer = Struct(">h").pack(33 if is_refused else 0) + bytes(4)
            else:
                message = body[SIZE:]
                assert int.from_bytes(body[:SIZE]) == len(message)
                self.messages.append(message)
                told = steps.step(message) if scram else b""
                token = told.token if isinstance(told, Proved) else told
                answer = Struct(">hhi").pack(58 if is_refused else 0, -1, len(token)) + token + bytes(8)
            try:
                request = exchange.send(bytes(2 * SIZE) + answer)
            except StopIteration:
                return

    def find(self, _mechanism: ScramMechanism, name: str, _is_token: bool) -> ScramIdentity | None:
        return self.identity if name == "alice" else None


def test_scram_client_is_believed_again_and_again() -> None:
    login = ScramLogin("SCRAM-SHA-512", "alice", "pencil")
    broker = Broker("pencil")
    broker.run(login.exchange())
    broker.run(login.exchange())
    assert broker.requests == [HANDSHAKE, AUTHENTICATE, AUTHENTICATE] * 2
    assert len(set(broker.messages)) == 4


def test_plain_client_tells_name_and_password() -> None:
    broker = Broker("")
    broker.run(PlainLogin("alice", "pencil").exchange(), scram=False)
    assert (broker.requests, broker.messages) == ([HANDSHAKE, AUTHENTICATE], [b"\0alice\0pencil"])


@pytest.mark.parametrize("refused_request", [0, 1, 2])
def test_error_code_ends_the_exchange(refused_request: int) -> None:
    exchange = ScramLogin("SCRAM-SHA-512", "alice", "pencil").exchange()
    with pytest.raises(RequestRefusedError, match="error code"):
        Broker("pencil", refused_request=refused_request).run(exchange)


def test_broker_that_does_not_know_the_password_is_not_believed() -> None:
    exchange = ScramLogin("SCRAM-SHA-512", "alice", "pencil").exchange()
    with pytest.raises(RequestRefusedError, match="did not prove"):
        Broker("pencil", is_honest=False).run(exchange)
