"""Properties in the names of Kafka's clients, for librdkafka and for connections of our own."""

import pytest

from penstock.broker.configuration.penstock_keys import PENSTOCK_KEYS
from penstock.client.client_properties import SECRETS, is_secret, librdkafka_properties
from penstock.protocol.errors import ConfigError
from penstock.quorum.configs.definition import ConfigType
from penstock.quorum.configs.table import broker_configs

PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="ada" password="pass word";'
SCRAM = PLAIN.replace("plain.PlainLoginModule", "scram.ScramLoginModule")
BEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
SASL = {"security.protocol": "SASL_SSL"}
PEM = {"ssl.keystore.type": "PEM", "ssl.truststore.type": "PEM"}
LOGIN = {"sasl.username": "ada", "sasl.password": "pass word"}


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, {}),
        ({"acks": "1", "security.protocol": "ssl"}, {"acks": "1", "security.protocol": "ssl"}),
        (
            SASL | {"sasl.mechanism": "PLAIN", "sasl.jaas.config": PLAIN},
            {"security.protocol": "sasl_ssl", "sasl.mechanisms": "PLAIN"} | LOGIN,
        ),
        (
            SASL | {"sasl.jaas.config": SCRAM},
            {"security.protocol": "sasl_ssl", "sasl.mechanisms": "SCRAM-SHA-256"} | LOGIN,
        ),
        (
            SASL | {"sasl.mechanisms": "SCRAM-SHA-512", "sasl.jaas.config": SCRAM},
            {"security.protocol": "sasl_ssl", "sasl.mechanisms": "SCRAM-SHA-512"} | LOGIN,
        ),
        (
            SASL | LOGIN | {"sasl.mechanisms": "PLAIN"},
            {"security.protocol": "sasl_ssl", "sasl.mechanisms": "PLAIN"} | LOGIN,
        ),
        (
            {"sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": f'{BEARER} clientId="a" clientSecret="b" scope="c";'},
            {
                "sasl.mechanisms": "OAUTHBEARER",
                "sasl.oauthbearer.client.id": "a",
                "sasl.oauthbearer.client.secret": "b",
                "sasl.oauthbearer.scope": "c",
            },
        ),
        (
            {"sasl.jaas.config": SCRAM.replace(";", ' tokenauth="true";')},
            {"sasl.mechanisms": "SCRAM-SHA-256", "sasl.scram.tokenauth": "true"} | LOGIN,
        ),
        (
            {"sasl.oauthbearer.token.endpoint.url": "https://idp/token"},
            {"sasl.oauthbearer.method": "oidc", "sasl.oauthbearer.token.endpoint.url": "https://idp/token"},
        ),
        (
            {"sasl.oauthbearer.token.endpoint.url": "file:///run/to%20ken"},
            {"sasl.oauthbearer.token.file": "/run/to ken"},
        ),
        (
            {"sasl.jaas.config": f'{BEARER} unsecuredLoginStringClaim_sub="ada";'},
            {"sasl.mechanisms": "OAUTHBEARER", "sasl.oauthbearer.unsecured.subject": "ada"},
        ),
        (
            PEM
            | {"ssl.truststore.location": "/ca.pem", "ssl.keystore.location": "/own.pem", "ssl.key.password": "x"}
            | {"ssl.endpoint.identification.algorithm": ""},
            {
                "ssl.ca.location": "/ca.pem",
                "ssl.certificate.location": "/own.pem",
                "ssl.key.location": "/own.pem",
                "ssl.key.password": "x",
                "ssl.endpoint.identification.algorithm": "none",
            },
        ),
        (
            PEM
            | {
                "ssl.truststore.certificates": "CA",
                "ssl.keystore.certificate.chain": "CHAIN",
                "ssl.keystore.key": "KEY",
            },
            {"ssl.ca.pem": "CA", "ssl.certificate.pem": "CHAIN", "ssl.key.pem": "KEY"},
        ),
        (
            {
                "ssl.protocol": "TLSv1.3",
                "sasl.login.callback.handler.class": "com.example.Login",
                "config.providers": "env",
                "config.providers.env.class": "x",
            },
            {},
        ),
        (
            {"default.api.timeout.ms": "1", "metric.reporters": "com.example.Reporter", "fetch.max.wait.ms": "2"},
            {"fetch.wait.max.ms": "2"},
        ),
    ],
)
def test_names_of_kafka_become_those_of_librdkafka(given: dict[str, str], found: dict[str, str]) -> None:
    assert librdkafka_properties(given) == found


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"security.protocol": "TLS"},
            "security.protocol must be one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL, but is",
        ),
        (SASL, "security.protocol is SASL_SSL, so sasl.mechanism must be set."),
        (SASL | {"sasl.mechanism": "PLAIN"}, "sasl.mechanism is PLAIN, so sasl.jaas.config, or sasl.username and"),
        (
            {"sasl.mechanism": "PLAIN", "sasl.jaas.config": SCRAM},
            "names ScramLoginModule, which is for SCRAM-SHA-256 and",
        ),
        ({"sasl.jaas.config": "com.example.Login required;"}, "no other class can be loaded here."),
        ({"sasl.jaas.config": PLAIN.replace("password", "passwort")}, "sasl.jaas.config has no option password."),
        ({"ssl.truststore.location": "/x.jks"}, "ssl.truststore.type is JKS by default, but only PEM is read here"),
        ({"ssl.keystore.location": "/x", "ssl.keystore.type": "PKCS12"}, "ssl.keystore.type is PKCS12, but only PEM"),
        (PEM | {"ssl.keystore.password": "pass word"}, "ssl.keystore.password is set, but a PEM store has no password"),
    ],
)
def test_what_cannot_be_is_one_sentence_without_a_password(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError) as raised:
        librdkafka_properties(given)
    assert sentence in str(raised.value)
    assert "pass word" not in str(raised.value)


def test_every_password_of_a_node_and_of_a_client_is_known_by_its_ending() -> None:
    brokers = {name for name, definition in broker_configs().items() if definition.is_sensitive}
    own = {name for name, key in PENSTOCK_KEYS.items() if key.type is ConfigType.PASSWORD}
    # Certificates are no secrets, though Kafka hides them with the keys.
    public = {"ssl.keystore.certificate.chain", "ssl.truststore.certificates"}
    assert {name for name in brokers | own | SECRETS if not is_secret(name)} == public
    assert is_secret("listener.name.x.scram-sha-256.sasl.jaas.config")
    assert not any(map(is_secret, ("num.partitions", "ssl.keystore.location", "security.protocol", "sasl.username")))
