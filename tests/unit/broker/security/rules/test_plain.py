"""PLAIN: who may be whom."""

import pytest

from penstock.broker.security.rules.plain import PlainExchange, PlainUsers
from penstock.broker.security.rules.sasl_exchange import AuthenticationFailed

USERS = PlainUsers({"user_alice": "hunter2", "user_ä": "wörd", "user_empty": "", "username": "ignored"})
WRONG = "Authentication failed: Invalid username or password"


@pytest.mark.parametrize(
    ("token", "principal"),
    [
        (b"\0alice\0hunter2", "User:alice"),
        (b"alice\0alice\0hunter2", "User:alice"),
        ("\0ä\0wörd".encode(), "User:ä"),
    ],
)
def test_the_right_password_proves_a_user(token: bytes, principal: str) -> None:
    assert PlainExchange(USERS).step(token).principal == principal


@pytest.mark.parametrize(
    ("token", "sentence"),
    [
        (b"\0alice\0hunter", WRONG),
        (b"\0alice\0hunter22", WRONG),
        (b"\0alice\0HUNTER2", WRONG),
        (b"\0bob\0hunter2", WRONG),
        (b"\0empty\0x", WRONG),
        (b"\0name\0ignored", WRONG),
        (b"\0\0hunter2", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (
            b"root\0alice\0hunter2",
            "Authentication failed: Client requested an authorization id that is different from username",
        ),
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"alice\0hunter2", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"\0alice\0hunter2\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0" * 9, "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0alice\0\xff", "Invalid SASL/PLAIN response: it is not UTF-8"),
    ],
)
def test_anything_else_is_refused_in_kafkas_words(token: bytes, sentence: str) -> None:
    with pytest.raises(AuthenticationFailed) as refused:
        PlainExchange(USERS).step(token)
    assert (refused.value.message, refused.value.reason) == (sentence, sentence)
    assert "hunter" not in sentence
