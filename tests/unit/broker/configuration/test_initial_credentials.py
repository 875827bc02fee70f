"""SCRAM credentials of a new cluster, as kafka-storage format --add-scram takes them."""

import pytest

from penstock.broker.configuration.initial_credentials import InitialCredential, parse_initial_credentials
from penstock.protocol.errors import ConfigError

KEY = "cluster.scram.credentials"


def credential(**changed: object) -> InitialCredential:
    fields: dict[str, object] = {
        "name": "alice",
        "mechanism": "SCRAM-SHA-256",
        "password": "hunter2",
        "salt": None,
        "salted_password": None,
        **changed,
    }
    return InitialCredential(**fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "credentials"),
    [
        ("", ()),
        ("SCRAM-SHA-256=[name=alice,password=hunter2]", (credential(),)),
        (
            'SCRAM-SHA-512=[name="alice",password="hunter2",iterations=8192,salt="c2FsdA=="]',
            (credential(mechanism="SCRAM-SHA-512", iterations=8192, salt=b"salt"),),
        ),
        (
            "SCRAM-SHA-256=[name=alice,saltedpassword=c2VjcmV0,salt=c2FsdA==]",
            (credential(password=None, salted_password=b"secret", salt=b"salt"),),
        ),
        (
            "SCRAM-SHA-256=[name=alice,password=a]b=[;],\nSCRAM-SHA-256=[name=bob,password=]x]]\n",
            (credential(password="a]b=[;"), credential(name="bob", password="]x]")),
        ),
    ],
)
def test_credentials_are_read(text: str, credentials: tuple[InitialCredential, ...]) -> None:
    assert parse_initial_credentials(KEY, text) == credentials
    assert "hunter2" not in repr(credentials)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("hunter2", f"Credential 1 of {KEY} is not of the form SCRAM-SHA-256=[name=alice,password=…]."),
        (
            "SCRAM-SHA-1=[name=a,password=hunter2]",
            f"Credential 1 of {KEY} is of another mechanism than SCRAM-SHA-256 and SCRAM-SHA-512.",
        ),
        (
            "SCRAM-SHA-256=[name=a,password=b] SCRAM-SHA-256=[name=a,password=hunter2",
            f"Credential 2 of {KEY} is not of the form SCRAM-SHA-256=[name=alice,password=…].",
        ),
        (
            "SCRAM-SHA-256=[name=a,password=hunter2,3]",
            f"Credential 1 of {KEY} has a field that is not one of name, password, salt, saltedpassword, iterations; a "
            "value cannot have a comma.",
        ),
        ("SCRAM-SHA-256=[password=hunter2]", f"Credential 1 of {KEY} must have a name."),
        ("SCRAM-SHA-256=[name=a]", f"Credential 1 of {KEY} must have one of password and saltedpassword."),
        (
            "SCRAM-SHA-256=[name=a,saltedpassword=aHVudGVyMg==]",
            f"Credential 1 of {KEY} has a saltedpassword, so it must have its salt.",
        ),
        (
            "SCRAM-SHA-256=[name=a,password=hunter2,salt=hunter2!]",
            f"The salt of credential 1 of {KEY} must be base64.",
        ),
        (
            "SCRAM-SHA-256=[name=a,password=hunter2,iterations=4095]",
            f"Credential 1 of {KEY} must have 4096 to 16384 iterations.",
        ),
        (
            "SCRAM-SHA-256=[name=a,password=hunter2];SCRAM-SHA-256=[name=a,password=hunter2]",
            f"{KEY} names a user twice for one mechanism.",
        ),
    ],
)
def test_what_cannot_be_is_one_sentence_without_a_secret(text: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_initial_credentials(KEY, text)
    assert str(refused.value) == sentence
    assert "hunter2" not in sentence
