"""What listeners are told about SASL, and what is refused at start."""

import pytest

from penstock.broker.configuration.node_config import NodeConfig, load
from penstock.broker.configuration.sasl_config import MECHANISMS
from penstock.protocol.errors import ConfigError

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
JAAS = f'{PLAIN_MODULE} required user_alice="hunter2";'
CHOICE = " or ".join(MECHANISMS)
OWN_JAAS = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
SASL = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    OWN_JAAS: JAAS,
}


def without(key: str, **changed: str) -> dict[str, str]:
    return {name: value for name, value in SASL.items() if name != key} | changed


def max_reauth_ms(config: NodeConfig) -> int:
    return config.sasl["SASL_PLAINTEXT"].mechanisms["PLAIN"].max_reauth_ms


def test_a_listener_has_its_mechanisms_and_their_users() -> None:
    config = load(SASL)
    sasl = config.sasl["SASL_PLAINTEXT"]
    jaas = sasl.mechanisms["PLAIN"].jaas
    assert jaas is not None
    assert jaas.options == {"user_alice": "hunter2"}
    assert sasl.max_receive_size == 524288
    assert config.failed_authentication_delay_ms == 100
    assert config.warnings == ()
    assert "hunter2" not in repr(sasl)


BEARER = {**SASL, "sasl.enabled.mechanisms": "OAUTHBEARER"}
BEARER_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
HANDLER = "listener.name.sasl_plaintext.oauthbearer.sasl.server.callback.handler.class"
UNSECURED = (
    "org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
)
BEARER_JAAS = "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config"


def test_tokens_are_checked_as_the_listener_is_told() -> None:
    told = {
        **BEARER,
        "sasl.oauthbearer.jwks.endpoint.url": "https://issuer/keys",
        "listener.name.sasl_plaintext.sasl.oauthbearer.expected.audience": "kafka, other",
        "listener.name.sasl_plaintext.oauthbearer.sasl.oauthbearer.expected.issuer": "https://issuer",
        "sasl.oauthbearer.sub.claim.name": "client",
    }
    bearer = load(told).sasl["SASL_PLAINTEXT"].mechanisms["OAUTHBEARER"].bearer
    assert bearer is not None
    assert (bearer.jwks_url, bearer.audiences, bearer.issuer) == (
        "https://issuer/keys",
        ("kafka", "other"),
        "https://issuer",
    )
    assert (bearer.sub_claim, bearer.scope_claim, bearer.skew_ms) == ("client", "scope", 30_000)


def test_options_of_the_login_module_say_whom_to_trust_over_https() -> None:
    told = {
        **BEARER,
        "sasl.oauthbearer.jwks.endpoint.url": "https://issuer/keys",
        BEARER_JAAS: f'{BEARER_MODULE} required ssl.truststore.type="PEM" ssl.truststore.location="/ca.pem";',
    }
    bearer = load(told).sasl["SASL_PLAINTEXT"].mechanisms["OAUTHBEARER"].bearer
    assert bearer is not None
    assert bearer.jwks_tls is not None
    assert bearer.jwks_tls.truststore_location == "/ca.pem"
    of_java = {BEARER_JAAS: f'{BEARER_MODULE} required ssl.truststore.location="/ca.jks";'}
    with pytest.raises(ConfigError, match="options of OAUTHBEARER of listener SASL_PLAINTEXT: ssl"):
        load(told | of_java)


@pytest.mark.parametrize(
    "told",
    [
        {HANDLER: UNSECURED},
        {BEARER_JAAS: f'{BEARER_MODULE} required unsecuredValidatorRequiredScope="write";'},
    ],
)
def test_unsigned_tokens_are_taken_where_that_is_told(told: dict[str, str]) -> None:
    bearer = load({**BEARER, **told}).sasl["SASL_PLAINTEXT"].mechanisms["OAUTHBEARER"].bearer
    assert bearer is not None
    assert bearer.jwks_url is None
    assert bearer.required_scopes == (("write",) if BEARER_JAAS in told else ())


def test_a_listener_without_sasl_has_none() -> None:
    assert load({}).sasl == {}


def test_what_is_told_for_a_mechanism_counts_before_the_listener_and_that_before_all() -> None:
    everywhere = {**SASL, "connections.max.reauth.ms": "3"}
    assert max_reauth_ms(load(everywhere)) == 3
    of_listener = {**everywhere, "listener.name.sasl_plaintext.connections.max.reauth.ms": "2"}
    assert max_reauth_ms(load(of_listener)) == 2
    assert (
        max_reauth_ms(load({**of_listener, "listener.name.sasl_plaintext.plain.connections.max.reauth.ms": "1"})) == 1
    )


def test_jaas_for_all_listeners_serves_the_mechanism_whose_module_it_names() -> None:
    jaas = load(without(OWN_JAAS) | {"sasl.jaas.config": JAAS}).sasl["SASL_PLAINTEXT"].mechanisms["PLAIN"].jaas
    assert jaas is not None
    assert jaas.options == {"user_alice": "hunter2"}


def test_anyone_who_reaches_a_wide_listener_with_sasl_has_still_to_prove_himself() -> None:
    assert load({**SASL, "listeners": "SASL_PLAINTEXT://:1"}).warnings == ()


@pytest.mark.parametrize(
    ("properties", "sentence"),
    [
        (
            without("sasl.enabled.mechanisms"),
            f"Listener SASL_PLAINTEXT speaks SASL, so sasl.enabled.mechanisms must name {CHOICE}: GSSAPI, the default, "
            "is not built.",
        ),
        (
            {**SASL, "sasl.enabled.mechanisms": ""},
            f"sasl.enabled.mechanisms must name {CHOICE}, because listener SASL_PLAINTEXT speaks SASL.",
        ),
        (
            {**SASL, "listener.name.sasl_plaintext.sasl.enabled.mechanisms": "PLAIN,GSSAPI"},
            "listener.name.sasl_plaintext.sasl.enabled.mechanisms holds GSSAPI (Kerberos), which is not built; it can "
            f"name {CHOICE}.",
        ),
        (
            {**SASL, "sasl.enabled.mechanisms": "plain"},
            f"sasl.enabled.mechanisms holds plain, but can only name {CHOICE}.",
        ),
        (
            without(OWN_JAAS),
            f"Listener SASL_PLAINTEXT has PLAIN, so {OWN_JAAS} must name the users: {PLAIN_MODULE} required "
            'user_NAME="password";',
        ),
        (
            {**SASL, OWN_JAAS: 'hunter2 required user_a="hunter2";'},
            f"{OWN_JAAS} must begin with {PLAIN_MODULE}, the login module of PLAIN.",
        ),
        (
            {**SASL, "listener.name.sasl_plaintext.plain.sasl.server.callback.handler.class": "com.example.Mine"},
            "listener.name.sasl_plaintext.plain.sasl.server.callback.handler.class is set, but no class of a callback "
            "handler can be loaded here.",
        ),
        (
            BEARER,
            "Listener SASL_PLAINTEXT has OAUTHBEARER, so sasl.oauthbearer.jwks.endpoint.url must say where the keys "
            f"of the tokens' issuer are; unsigned tokens are taken only where {HANDLER} is {UNSECURED}.",
        ),
        (
            {**BEARER, HANDLER: UNSECURED, "sasl.oauthbearer.jwks.endpoint.url": "https://a/b"},
            "Listener SASL_PLAINTEXT is told both sasl.oauthbearer.jwks.endpoint.url and to take unsigned tokens; it "
            "can be one of them.",
        ),
        (
            {**BEARER, HANDLER: "com.example.Mine"},
            f"{HANDLER} can only be org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler "
            f"or {UNSECURED}: no other class can be loaded here.",
        ),
        (
            {**BEARER, "sasl.oauthbearer.jwks.endpoint.url": "ftp://a/b"},
            "sasl.oauthbearer.jwks.endpoint.url must be the URL of a JSON Web Key Set, https://… or file:///…, but "
            "is not.",
        ),
        (
            {**SASL, "sasl.server.max.receive.size": "0"},
            "sasl.server.max.receive.size is 0, but it is a number of bytes above 0.",
        ),
        (
            {**SASL, "connection.failed.authentication.delay.ms": "10", "connections.max.idle.ms": "10"},
            "connection.failed.authentication.delay.ms (10) must be less than connections.max.idle.ms (10).",
        ),
        (
            {**SASL, "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256"},
            "sasl.mechanism.inter.broker.protocol is SCRAM-SHA-256, but listener SASL_PLAINTEXT has only PLAIN; nodes "
            "need none of them: they prove themselves by PENSTOCK-CLUSTER.",
        ),
    ],
)
def test_what_cannot_be_is_one_sentence(properties: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(properties)
    assert str(refused.value) == sentence
