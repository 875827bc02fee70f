"""A listener of clients with TLS and SASL, beside the one that asks nothing of them.

Brokers, and programs that cannot be told of passwords, go on with the plain one, where everyone is a super user.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import trustme
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from kio.schema.alter_user_scram_credentials.v0.request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from kio.static.primitive import i8, i32

from penstock.client.addresses import parse_addresses
from penstock.client.connection import connect
from penstock.local.errors import ClusterError
from penstock.local.local_node import HOST, LocalNode
from penstock.local.ports import find_free
from penstock.protocol.scram import BY_NAME, ITERATIONS_MIN

NAME: Final = "SECURE"
PLAIN_LISTENER: Final = "PLAINTEXT"
MECHANISM: Final = "SCRAM-SHA-512"
# Two users who may do what no ACL forbids, and no more.
USER: Final = "suite"
SECOND_USER: Final = "second"
# librdkafka's own clusters have clients prove themselves anew as often.
REAUTHENTICATION_MS: Final = 10_000
_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"


class SecureListener:
    """Of each node of one cluster, with certificates of an authority of its own in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._generator = random.Random()
        self._ports: dict[int, int] = {}
        authority = trustme.CA()
        folder.mkdir(parents=True, exist_ok=True)
        authority.cert_pem.write_to_path(str(self.authority))
        # For the address alone: nodes of one machine share it.
        own = authority.issue_cert("localhost", HOST)
        certificates = b"".join(one.bytes() for one in own.cert_chain_pems)
        (folder / "node.pem").write_bytes(_pkcs8(own.private_key_pem.bytes()) + certificates)

    @property
    def authority(self) -> Path:
        """The certificate that clients trust, in PEM."""
        return self._folder / "authority.pem"

    @property
    def bootstrap(self) -> str:
        """Known once the cluster was started."""
        return ",".join(f"{HOST}:{port}" for port in self._ports.values())

    def rewire(self, node: LocalNode, told: Mapping[str, str]) -> Mapping[str, str]:
        """What a node is told, with this listener among the others."""
        if node.id not in self._ports:
            self._ports[node.id] = find_free(self._generator)
        own = f"{NAME}://{HOST}:{self._ports[node.id]}"
        plain = f"{PLAIN_LISTENER}://{node.address}"
        return {
            **told,
            "listeners": f"{told.get('listeners', plain)},{own}",
            "advertised.listeners": f"{told.get('advertised.listeners', plain)},{own}",
            "listener.security.protocol.map": f"{PLAIN_LISTENER}:PLAINTEXT,CONTROLLER:PLAINTEXT,{NAME}:SASL_SSL",
            "inter.broker.listener.name": PLAIN_LISTENER,
            "sasl.enabled.mechanisms": MECHANISM,
            f"listener.name.{NAME.lower()}.{MECHANISM.lower()}.sasl.jaas.config": f"{_MODULE} required;",
            "connections.max.reauth.ms": str(REAUTHENTICATION_MS),
            # Of brokers, and of controllers too.
            "delegation.token.secret.key": f"{USER}-secret-key",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._folder / "node.pem"),
        }

    def add_users(self, plain_bootstrap: str) -> None:
        """Once the cluster was started, through its plain listener: each user's password is `password_of`.

        Raises ClusterError.
        """
        asyncio.run(_add_users(plain_bootstrap))

    def java_properties(self, user: str = USER, password: str | None = None, *options: str) -> str:
        """Of Apache Kafka's clients and tools; `options` are those of the login module."""
        secret = password_of(user) if password is None else password
        told = " ".join((f'username="{user}"', f'password="{secret}"', *options))
        return (
            f"security.protocol=SASL_SSL\nsasl.mechanism={MECHANISM}\nsasl.jaas.config={_MODULE} required {told};\n"
            f"ssl.truststore.type=PEM\nssl.truststore.location={self.authority}\n"
        )

    def librdkafka_properties(self) -> str:
        return (
            f"security.protocol=SASL_SSL\nsasl.mechanism={MECHANISM}\nsasl.username={USER}\n"
            f"sasl.password={password_of(USER)}\nssl.ca.location={self.authority}\n"
        )


def password_of(user: str) -> str:
    return f"{user}-secret"


def _pkcs8(key: bytes) -> bytes:
    """The form of a private key that Apache Kafka reads."""
    return load_pem_private_key(key, None).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


async def _add_users(bootstrap: str) -> None:
    mechanism, salt = BY_NAME[MECHANISM], b"not so random"
    request = AlterUserScramCredentialsRequest(
        deletions=(),
        upsertions=tuple(
            ScramCredentialUpsertion(
                name=user,
                mechanism=i8(mechanism.number),
                iterations=i32(ITERATIONS_MIN),
                salt=salt,
                salted_password=mechanism.salted_password(password_of(user), salt, ITERATIONS_MIN),
            )
            for user in (USER, SECOND_USER)
        ),
    )
    address = parse_addresses(bootstrap)[0]
    async with await connect(address.host, address.port) as connection:
        answer: Any = await connection.call(request)
    for result in answer.results:
        if result.error_code:
            raise ClusterError(f"user {result.user} was refused: {result.error_message}")
