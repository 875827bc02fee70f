"""Kafka's JAAS syntax: what Java's StreamTokenizer makes of it, and sentences that show nothing of it."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.protocol.errors import ConfigError
from penstock.protocol.jaas import parse_jaas

KEY = "listener.name.a.plain.sasl.jaas.config"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (";", {}),
        ('user_alice="alice-secret";', {"user_alice": "alice-secret"}),
        ("user_alice='a \"b\"' user_bob=bob-1;", {"user_alice": 'a "b"', "user_bob": "bob-1"}),
        (r'user_a="q\"\\n\n\t\101\0";', {"user_a": 'q"\\n\n\tA\0'}),
        (r'user_a="\4011\778";', {"user_a": "\x20" + "11?8"}),
        ('user_a="1" // user_b="2"\nuser_c="3"\n;', {"user_a": "1", "user_c": "3"}),
        ('/* user_a="1" */ user_b = "2" ;', {"user_b": "2"}),
        ('user_a="1"\tuser_a="2";', {"user_a": "2"}),
        ('user_a="";', {"user_a": ""}),
        ("user_é$x=wört.1;", {"user_é$x": "wört.1"}),
        ("/\nnot = read\nuser_a=b;", {"user_a": "b"}),
    ],
)
def test_options_are_read_as_kafka_reads_them(text: str, options: dict[str, str]) -> None:
    entry = parse_jaas(KEY, f"{MODULE} REQUIRED {text}")
    assert entry.login_module == MODULE
    assert entry.options == options


@pytest.mark.thorough
@given(st.dictionaries(st.from_regex(r"user_[a-z]{1,9}", fullmatch=True), st.text().filter(lambda v: "\r" not in v)))
def test_quoted_values_come_back(options: dict[str, str]) -> None:
    def quoted(value: str) -> str:
        return '"' + value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") + '"'

    text = " ".join(f"{name}={quoted(value)}" for name, value in options.items())
    assert parse_jaas(KEY, f"{MODULE} required {text};").options == options


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "must hold one login module that ends with a semicolon, but holds 0."),
        ("// secret", "must hold one login module that ends with a semicolon, but holds 0."),
        ("secret required; secret required;", "must hold one login module that ends with a semicolon, but holds 2."),
        ("= required;", "must begin with the class of a login module."),
        ("secret", "must have one of required, requisite, sufficient and optional behind"),
        ("a secret;", "must have one of required, requisite, sufficient and optional behind"),
        ('a required user_a="secret"', "must end with a semicolon."),
        ('a required user_a="secret;', "must end with a semicolon."),
        ("a required user_a=1secret;", "but character 12 begins none"),
        ("a required user_a=secret@b;", "but character 25 begins none"),
        ('a required "secret" user_a;', "but character 12 begins none"),
        ("a required 1=secret;", "but character 12 begins none"),
        ('a required user_a="secret', "must end with a semicolon."),
        ('a required user_a="secret\\', "must end with a semicolon."),
    ],
)
def test_errors_name_the_key_and_quote_nothing(text: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_jaas(KEY, text)
    assert str(refused.value).startswith(f"{KEY} ")
    assert sentence in str(refused.value)
    assert "secret" not in str(refused.value)


@given(st.text(alphabet=st.sampled_from("a_=;\"'\\/*0.- \n7#é")))
def test_whatever_stands_there_is_read_or_refused(text: str) -> None:
    # Any other exception fails.
    with suppress(ConfigError):
        assert parse_jaas(KEY, text).login_module


def test_an_entry_does_not_show_its_options() -> None:
    assert "hunter2" not in repr(parse_jaas(KEY, 'a required user_a="hunter2";'))
