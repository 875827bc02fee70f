"""What listeners are told of TLS, and the sentences about what cannot be."""

import pytest

from penstock.broker.configuration.node_config import load
from penstock.broker.configuration.tls_config import TlsConfig
from penstock.protocol.errors import ConfigError

CHAIN = "-----BEGIN CERTIFICATE----- AAAA BBBB -----END CERTIFICATE-----"
KEY = "-----BEGIN PRIVATE KEY----- CCCC -----END PRIVATE KEY-----"
PEM = {"ssl.keystore.type": "PEM", "ssl.truststore.type": "PEM"}
SSL = {"listeners": "SSL://127.0.0.1:0", "inter.broker.listener.name": "SSL", "ssl.keystore.location": "/node.pem"}
TRUST = {"ssl.truststore.location": "/ca.pem"}
CLUSTER = {
    **PEM,
    **SSL,
    **TRUST,
    "listeners": "SSL://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
    "listener.security.protocol.map": "SSL:SSL,CONTROLLER:SSL",
    "ssl.client.auth": "required",
    "cluster.certificate.name": "node-{id}",
}
CONVERT = "convert it (`keytool -importkeystore -srckeystore OLD -destkeystore NEW.p12 -deststoretype PKCS12`, then "
TO_PEM = "`openssl pkcs12 -in NEW.p12 -out NEW.pem`) and set PEM."


def tls(properties: dict[str, str], listener: str = "SSL") -> TlsConfig:
    return load({**PEM, **SSL, **properties}).tls[listener]


def test_a_listener_of_its_own_protocol_has_what_all_listeners_have() -> None:
    config = tls({})
    assert config.keystore_location == "/node.pem"
    assert (config.client_auth, config.protocols) == ("none", ("TLSv1.2", "TLSv1.3"))
    assert config.is_host_checked
    assert not tls({"ssl.endpoint.identification.algorithm": ""}).is_host_checked


def test_what_a_listener_has_of_its_own_counts_for_it_alone() -> None:
    config = load(
        {
            **CLUSTER,
            "listener.name.controller.ssl.keystore.location": "/controller.pem",
            "listener.name.ssl.ssl.client.auth": "requested",
        }
    )
    assert (config.tls["SSL"].keystore_location, config.tls["SSL"].client_auth) == ("/node.pem", "requested")
    controller = config.tls["CONTROLLER"]
    assert (controller.keystore_location, controller.client_auth) == ("/controller.pem", "required")
    assert not any("no effect" in warning for warning in config.warnings)


def test_rules_for_principals_are_of_listeners_where_certificates_say_who_a_client_is() -> None:
    """KIP-371: `listener.name.X.ssl.principal.mapping.rules` over that of all listeners."""
    rules = {
        **CLUSTER,
        "ssl.principal.mapping.rules": "RULE:^CN=([^,]*).*$/$1/L, DEFAULT",
        "listener.name.controller.ssl.principal.mapping.rules": "DEFAULT",
        "principal.builder.class": "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
    }
    config = load(rules)
    named = {name: config.principal_mapping_of(name) for name in ("SSL", "CONTROLLER", "PLAINTEXT")}
    assert {name: mapping and mapping.name_of("CN=Ada,O=x") for name, mapping in named.items()} == {
        "SSL": "ada",
        "CONTROLLER": "CN=Ada,O=x",
        "PLAINTEXT": None,
    }
    assert config.warnings == ()
    # Equal ones are not taken for a change of the listener.
    assert load(rules).tls == config.tls
    assert load(SSL | PEM).principal_mapping_of("SSL") is not None
    assert load({"listeners": "PLAINTEXT://127.0.0.1:0"}).principal_mapping_of("PLAINTEXT") is None


def test_pem_in_a_property_may_have_lost_its_line_breaks() -> None:
    config = tls({"ssl.keystore.location": "", "ssl.keystore.certificate.chain": CHAIN, "ssl.keystore.key": KEY})
    assert config.certificate_chain == "-----BEGIN CERTIFICATE-----\nAAAABBBB\n-----END CERTIFICATE-----\n"
    assert config.key is not None
    assert config.key.split("\n")[1:2] == ["CCCC"]
    assert "CCCC" not in repr(config)


def test_who_required_a_certificate_is_not_warned_that_every_client_gets_in() -> None:
    wide = {**CLUSTER, "listeners": "SSL://10.0.0.1:1,CONTROLLER://10.0.0.1:2"}
    assert load(wide).warnings == ()
    (warning,) = load({**wide, "listener.name.ssl.ssl.client.auth": "requested"}).warnings
    assert warning.startswith("Anyone who reaches SSL://10.0.0.1:1 can read and write everything")


@pytest.mark.parametrize(
    ("properties", "sentence"),
    [
        (
            {"listener.name.ssl.ssl.principal.mapping.rules": "default"},
            "listener.name.ssl.ssl.principal.mapping.rules must hold DEFAULT and RULE:pattern/replacement/[LU] with "
            "commas between them, but one rule is 'default'.",
        ),
        (
            {"ssl.keystore.type": "JKS"},
            f"ssl.keystore.type is JKS, but only PEM is read here: {CONVERT}{TO_PEM}",
        ),
        (
            {"listener.name.ssl.ssl.keystore.type": "PKCS12"},
            f"listener.name.ssl.ssl.keystore.type is PKCS12, but only PEM is read here: convert it ({TO_PEM}",
        ),
        (
            {"ssl.keystore.password": "x"},
            "ssl.keystore.password is set, but a PEM store has no password; ssl.key.password is that of the key in it.",
        ),
        (
            {**TRUST, "ssl.truststore.password": "x"},
            "ssl.truststore.password is set, but a PEM store has no password.",
        ),
        (
            {"ssl.keystore.location": ""},
            "Listener SSL speaks SSL, so ssl.keystore.location, or ssl.keystore.certificate.chain and "
            "ssl.keystore.key, must be set.",
        ),
        (
            {"ssl.keystore.certificate.chain": CHAIN, "ssl.keystore.key": KEY},
            "Only one of ssl.keystore.location and ssl.keystore.certificate.chain may be set.",
        ),
        (
            {"ssl.keystore.location": "", "ssl.keystore.key": KEY},
            "ssl.keystore.key is set, so ssl.keystore.certificate.chain must be set too.",
        ),
        (
            {"ssl.keystore.location": "", "ssl.keystore.key": "secret", "ssl.keystore.certificate.chain": CHAIN},
            "ssl.keystore.key must hold PEM, which begins with -----BEGIN, but does not.",
        ),
        (
            {"listener.name.ssl.ssl.client.auth": "required"},
            "listener.name.ssl.ssl.client.auth is required for listener SSL, so ssl.truststore.location or "
            "ssl.truststore.certificates must say which authorities vouch for clients.",
        ),
        (
            {"listener.name.ssl.ssl.client.auth": "maybe"},
            "Invalid value maybe for configuration listener.name.ssl.ssl.client.auth: String must be one of: "
            "required, requested, none",
        ),
        (
            {"ssl.enabled.protocols": "TLSv1.1,TLSv1.2"},
            "ssl.enabled.protocols holds TLSv1.1, but only TLSv1.2 and TLSv1.3 are safe.",
        ),
        (
            {
                "ssl.keystore.location": "",
                "listeners": "SASL_SSL://127.0.0.1:0",
                "inter.broker.listener.name": "SASL_SSL",
            },
            "Listener SASL_SSL speaks SSL, so ssl.keystore.location, or ssl.keystore.certificate.chain and "
            "ssl.keystore.key, must be set.",
        ),
    ],
)
def test_what_cannot_be_is_one_sentence(properties: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load({**PEM, **SSL, **properties})
    assert str(refused.value) == sentence


def test_clients_of_sasl_show_certificates_only_where_their_listener_asks() -> None:
    sasl = {
        "listeners": "SSL://127.0.0.1:0,SASL_SSL://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.jaas.config": 'org.apache.kafka.common.security.plain.PlainLoginModule required user_a="b";',
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": CHAIN,
        "ssl.client.auth": "required",
    }
    inherited = load({**PEM, **SSL, **sasl}).tls
    assert (inherited["SSL"].client_auth, inherited["SASL_SSL"].client_auth) == ("required", "none")
    own = load({**PEM, **SSL, **sasl, "listener.name.sasl_ssl.ssl.client.auth": "requested"}).tls
    assert own["SASL_SSL"].client_auth == "requested"


def test_java_s_format_is_the_default_and_said_to_be() -> None:
    with pytest.raises(ConfigError) as refused:
        load(SSL)
    assert str(refused.value) == f"ssl.keystore.type is JKS by default, but only PEM is read here: {CONVERT}{TO_PEM}"


@pytest.mark.parametrize(
    ("properties", "sentence"),
    [
        (
            {"cluster.certificate.name": "node"},
            "cluster.certificate.name must hold {id} once, where a certificate has the node's number, but is 'node'.",
        ),
        (
            {"listener.security.protocol.map": "SSL:SSL,CONTROLLER:PLAINTEXT"},
            "cluster.certificate.name is set, so listener.security.protocol.map must give CONTROLLER SSL: nodes reach "
            "each other there, and show their certificates.",
        ),
        (
            {"listener.name.controller.ssl.client.auth": "none"},
            "cluster.certificate.name is set, so listener.name.controller.ssl.client.auth of listener CONTROLLER must "
            "be required or requested, not none.",
        ),
        (
            {
                "process.roles": "broker",
                "controller.quorum.voters": "2@a:1",
                "listeners": "SSL://127.0.0.1:0",
                "ssl.keystore.location": "",
                "listener.name.ssl.ssl.keystore.location": "/node.pem",
            },
            "cluster.certificate.name is set, so ssl.keystore.location must hold the certificate that this node shows "
            "when it connects to listener CONTROLLER.",
        ),
    ],
)
def test_certificates_prove_a_node_only_where_both_sides_show_them(properties: dict[str, str], sentence: str) -> None:
    load(CLUSTER)
    with pytest.raises(ConfigError) as refused:
        load({**CLUSTER, **properties})
    assert str(refused.value) == sentence


def test_certificates_take_the_place_of_the_secret() -> None:
    load({**CLUSTER, "controller.quorum.voters": "1@a:1,2@b:1"})
