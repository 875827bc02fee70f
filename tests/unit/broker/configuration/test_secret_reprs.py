"""What holds passwords does not show them in its repr: values of configurations, of metadata and of requests."""

from penstock.broker.configuration.node_config import load
from penstock.protocol.ids import NodeId
from penstock.quorum.configs.effective import BrokerConfigs
from penstock.quorum.decisions.context import ControllerConfig
from penstock.quorum.metadata.image import ConfigResource, ConfigResourceType, ConfigsImage
from penstock.quorum.metadata.persistent_map import PersistentMap
from penstock.quorum.metadata.records import ConfigRecord

MARK = "mark-4b1d"
JAAS = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_ada="{MARK}";'
SECRETS = {
    "cluster.secret": MARK,
    "delegation.token.secret.key": MARK,
    "ssl.key.password": MARK,
    "ssl.keystore.type": "PEM",
    "ssl.keystore.certificate.chain": "-----BEGIN CERTIFICATE----- AAAA -----END CERTIFICATE-----",
    "ssl.keystore.key": f"-----BEGIN PRIVATE KEY----- {MARK} -----END PRIVATE KEY-----",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl.plain.sasl.jaas.config": JAAS,
    "rsm.config.secret": MARK,
    "listeners": "SASL://127.0.0.1:0",
    "listener.security.protocol.map": "SASL:SASL_SSL,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "SASL",
}


def test_the_configuration_of_a_node() -> None:
    config = load(SECRETS)
    assert config.sasl["SASL"].mechanisms["PLAIN"].jaas is not None
    assert config.tls["SASL"].key_password == MARK
    assert config.cluster_secret == MARK.encode()
    assert MARK not in repr(config)
    assert MARK not in str(config.warnings)


def test_what_is_made_of_it() -> None:
    controller = ControllerConfig(node_id=NodeId(1), properties=SECRETS)
    configs = BrokerConfigs(dynamic=SECRETS, dynamic_default=SECRETS, static=SECRETS)
    assert MARK not in repr(controller) + repr(configs)


def test_dynamic_configs_in_the_metadata() -> None:
    record = ConfigRecord(resource_type=4, resource_name="1", name="ssl.key.password", value=MARK)
    resource = ConfigResource(ConfigResourceType.BROKER, "1")
    image = ConfigsImage(by_resource=PersistentMap({resource: {"ssl.key.password": MARK}}))
    assert MARK not in repr(record) + repr(image)
    assert image.of(resource) == {"ssl.key.password": MARK}
