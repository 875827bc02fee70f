"""How a node proves to others that it is of their cluster: a secret that all know, the names of certificates, or both.

Decisions 4 and 7. Where no secret is given, the login that Apache Kafka's nodes would use among themselves is one.
"""

import hashlib
from collections.abc import Mapping
from typing import Final

from ...protocol.errors import ConfigError
from ...protocol.scram import BY_NAME
from ...quorum.links.rules.node_certificates import NodeCertificates
from .penstock_keys import CLUSTER_CERTIFICATE_NAME, CLUSTER_SECRET
from .property_values import PropertyValues
from .sasl_config import PLAIN, read_login, sasl_keys_of
from .tls_config import CLIENT_AUTH, KEYSTORE_LOCATION, TlsConfig

CONTROLLER_MECHANISM: Final = "sasl.mechanism.controller.protocol"
INTER_BROKER_MECHANISM: Final = "sasl.mechanism.inter.broker.protocol"
# A client is shown a proof that was made with the secret, and can try passwords on it: some 10 ms each.
_ITERATIONS: Final = 16_384
_SALT: Final = b"penstock nodes "


def cluster_secret(
    values: PropertyValues, protocols: Mapping[str, str], controller_name: str, inter_broker_name: str
) -> bytes:
    """`cluster.secret`; else made of the user and password by which nodes log in with PLAIN or SCRAM; else empty.

    The login is the one on the controllers' listener when that has SASL: all nodes know it. Raises ConfigError.
    """
    given = values.text_or_none(CLUSTER_SECRET) or ""
    if given:
        return given.encode()
    for key, name in ((CONTROLLER_MECHANISM, controller_name), (INTER_BROKER_MECHANISM, inter_broker_name)):
        mechanism = values.text_or_none(key) or ""
        if not protocols.get(name, "").startswith("SASL") or mechanism not in (PLAIN, *BY_NAME):
            continue
        values.used.update(sasl_keys_of(name))
        login = read_login(values.properties, name, mechanism)
        if login is not None:
            return hashlib.pbkdf2_hmac("sha512", login.password.encode(), _SALT + login.user.encode(), _ITERATIONS)
    return b""


def node_certificates(values: PropertyValues) -> NodeCertificates | None:
    name = values.text_or_none(CLUSTER_CERTIFICATE_NAME)
    return NodeCertificates(CLUSTER_CERTIFICATE_NAME, name.strip()) if name else None


def check_node_certificates(name: str, tls: TlsConfig | None, *, is_served: bool) -> None:
    """Checks that both sides of connections to the nodes' listener `name` show a certificate. Raises ConfigError."""
    if tls is None:
        raise ConfigError(
            f"{CLUSTER_CERTIFICATE_NAME} is set, so listener.security.protocol.map must give {name} SSL: nodes "
            "reach each other there, and show their certificates."
        )
    if is_served and tls.client_auth == "none":
        raise ConfigError(
            f"{CLUSTER_CERTIFICATE_NAME} is set, so {tls.key_of(CLIENT_AUTH)} of listener {name} must be required "
            "or requested, not none."
        )
    if not tls.has_keystore:
        raise ConfigError(
            f"{CLUSTER_CERTIFICATE_NAME} is set, so {tls.key_of(KEYSTORE_LOCATION)} must hold the certificate that "
            f"this node shows when it connects to listener {name}."
        )
