"""Records of the SCRAM credentials that a new cluster begins with (KIP-900). Kafka: `ScramParser`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from ....protocol.scram import BY_NAME
from ....quorum.metadata.security_image import ScramUser
from ....quorum.metadata.security_records import UserScramCredentialRecord
from ....quorum.permissions.scram_credentials import credential_record
from ...configuration.initial_credentials import InitialCredential

if TYPE_CHECKING:
    from random import Random

_SALT_LETTERS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
SALT_LETTERS_COUNT: Final = 26
"""134 bits, as Kafka's tools draw them."""


def credential_records(
    credentials: Iterable[InitialCredential], random: Random
) -> tuple[UserScramCredentialRecord, ...]:
    """A salt is no secret; it only must not be that of another user."""
    return tuple([_record(credential, random) for credential in credentials])


def _record(credential: InitialCredential, random: Random) -> UserScramCredentialRecord:
    mechanism = BY_NAME[credential.mechanism]
    salt = credential.salt
    if salt is None:
        salt = "".join(random.choices(_SALT_LETTERS, k=SALT_LETTERS_COUNT)).encode()
    salted_password = credential.salted_password
    if salted_password is None:
        assert credential.password is not None, "one of both is there"
        salted_password = mechanism.salted_password(credential.password, salt, credential.iterations)
    return credential_record(
        ScramUser(credential.name, mechanism.number),
        salt=salt,
        salted_password=salted_password,
        iterations=credential.iterations,
    )
