"""What the cluster keeps of a password (RFC 5802)."""

from __future__ import annotations

from ...protocol.scram import BY_NUMBER
from ..metadata.security_image import ScramUser
from ..metadata.security_records import UserScramCredentialRecord


def credential_record(
    user: ScramUser, *, salt: bytes, salted_password: bytes, iterations: int
) -> UserScramCredentialRecord:
    """What is kept of a salted password."""
    mechanism = BY_NUMBER[user.mechanism]
    return UserScramCredentialRecord(
        name=user.name,
        mechanism=user.mechanism,
        salt=salt,
        stored_key=mechanism.stored_key(salted_password),
        server_key=mechanism.server_key(salted_password),
        iterations=int(iterations),
    )
