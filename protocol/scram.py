"""SCRAM's keys (RFC 5802, RFC 7677), by the numbers that Kafka has for its mechanisms (KIP-554).

A server keeps neither the password nor what a client proves itself with: `stored_key` checks a proof, `server_key`
makes the server's own. Kafka: `ScramMechanism`, `ScramFormatter`; as there, passwords are not prepared (RFC 4013).
"""

import hashlib
import hmac
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 16384
"""More would let who may set one credential keep clients busy; Kafka: `ScramControlManager.MAX_ITERATIONS`."""


class ScramMechanism(NamedTuple):
    """One of them; `digest` is its hash function's name."""

    name: str
    number: int
    digest: str

    def hash(self, data: bytes) -> bytes:
        return hashlib.new(self.digest, data).digest()

    def hmac(self, key: bytes, data: bytes) -> bytes:
        return hmac.digest(key, data, self.digest)

    def salted_password(self, password: str, salt: bytes, iterations: int) -> bytes:
        """Takes milliseconds: that is its purpose."""
        return hashlib.pbkdf2_hmac(self.digest, password.encode(), salt, iterations)

    def stored_key(self, salted_password: bytes) -> bytes:
        return self.hash(self.hmac(salted_password, b"Client Key"))

    def server_key(self, salted_password: bytes) -> bytes:
        return self.hmac(salted_password, b"Server Key")


SCRAM_SHA_256: Final = ScramMechanism("SCRAM-SHA-256", 1, "sha256")
SCRAM_SHA_512: Final = ScramMechanism("SCRAM-SHA-512", 2, "sha512")
BY_NAME: Final[Mapping[str, ScramMechanism]] = MappingProxyType(
    {mechanism.name: mechanism for mechanism in (SCRAM_SHA_256, SCRAM_SHA_512)}
)
BY_NUMBER: Final[Mapping[int, ScramMechanism]] = MappingProxyType(
    {mechanism.number: mechanism for mechanism in BY_NAME.values()}
)
