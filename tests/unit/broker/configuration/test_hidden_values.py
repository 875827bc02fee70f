"""Sentences about properties without their secrets."""

import pytest

from penstock.broker.configuration.hidden_values import hide_secrets, is_hidden


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [
        ("ssl.key.password", True),
        ("listener.name.clients.ssl.key.password", True),
        ("listener.name.clients.scram-sha-256.sasl.jaas.config", True),
        ("cluster.secret", True),
        ("cluster.id", False),
        ("num.partitions", False),
        # What is not known might be a password.
        ("config.providers.vault.param.token", True),
    ],
)
def test_which_keys_are_hidden(name: str, is_secret: bool) -> None:
    assert is_hidden(name) is is_secret


@pytest.mark.parametrize(
    ("properties", "variables", "expected"),
    [
        ({"cluster.secret": " hunter2 "}, {}, "It is [hidden], not 17."),
        ({"cluster.secret": "hunter2"}, {"cluster.secret": "${env:X}"}, "It is ${env:X}, not 17."),
        ({"broker.rack": "hunter2"}, {"broker.rack": "a${env:X}"}, "It is a${env:X}, not 17."),
        ({"broker.rack": "hunter2"}, {}, "It is hunter2, not 17."),
        # Too short to be told from other words.
        ({"cluster.secret": "17"}, {}, "It is hunter2, not 17."),
        # The longer one goes first, or its rest would be shown.
        ({"cluster.secret": "hunt", "ssl.key.password": "hunter2"}, {}, "It is [hidden], not 17."),
    ],
)
def test_secrets_of_a_sentence(properties: dict[str, str], variables: dict[str, str], expected: str) -> None:
    assert hide_secrets("It is hunter2, not 17.", properties, variables) == expected
