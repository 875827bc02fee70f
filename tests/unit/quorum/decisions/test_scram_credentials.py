"""AlterUserScramCredentials as the controller decides it: Kafka's codes and sentences."""

import pytest
from kio.schema.alter_user_scram_credentials.v0.request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kio.static.primitive import i8, i32
from metadata_cluster import Cluster

from penstock.protocol.errors import ErrorCode
from penstock.protocol.scram import SCRAM_SHA_256, SCRAM_SHA_512
from penstock.quorum.decisions.scram_credentials import alter_user_scram_credentials

TWICE = (ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")
NONE = (ErrorCode.NONE, None)


def upsertion(
    name: str, mechanism: int = 1, iterations: int = 4096, password: bytes = b"salted"
) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(
        name=name, mechanism=i8(mechanism), iterations=i32(iterations), salt=b"salt", salted_password=password
    )


def deletion(name: str, mechanism: int = 1) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=name, mechanism=i8(mechanism))


def alter(
    cluster: Cluster, *changes: ScramCredentialUpsertion | ScramCredentialDeletion
) -> dict[str, tuple[ErrorCode, str | None]]:
    request = AlterUserScramCredentialsRequest(
        deletions=tuple(change for change in changes if isinstance(change, ScramCredentialDeletion)),
        upsertions=tuple(change for change in changes if isinstance(change, ScramCredentialUpsertion)),
    )
    response = cluster.submit(alter_user_scram_credentials, request)
    assert len({result.user for result in response.results}) == len(response.results)
    return {result.user: (ErrorCode(int(result.error_code)), result.error_message) for result in response.results}


def users(cluster: Cluster) -> set[tuple[str, int]]:
    return {(user.name, user.mechanism) for user, _ in cluster.image.scram_credentials.items()}


def test_a_credential_keeps_keys_and_not_the_salted_password() -> None:
    cluster = Cluster()
    assert alter(cluster, upsertion("alice"), upsertion("bob", mechanism=2, iterations=16384)) == {
        "alice": NONE,
        "bob": NONE,
    }
    credentials = dict(cluster.image.scram_credentials.items())
    for mechanism, name in ((SCRAM_SHA_256, "alice"), (SCRAM_SHA_512, "bob")):
        credential = credentials[(name, mechanism.number)]  # type: ignore[index]
        assert credential.stored_key == mechanism.stored_key(b"salted")
        assert credential.server_key == mechanism.server_key(b"salted")
        assert (credential.salt, credential.iterations) == (b"salt", 4096 if name == "alice" else 16384)
        assert "salted" not in repr(credential)


def test_a_credential_is_replaced_and_deleted() -> None:
    cluster = Cluster()
    alter(cluster, upsertion("alice"), upsertion("bob"))
    alter(cluster, upsertion("alice", mechanism=2))
    assert users(cluster) == {("alice", 1), ("alice", 2), ("bob", 1)}
    assert alter(cluster, upsertion("alice", password=b"new"), deletion("bob")) == {"alice": NONE, "bob": NONE}
    assert users(cluster) == {("alice", 1), ("alice", 2)}
    assert alter(cluster, deletion("alice", mechanism=2)) == {"alice": NONE}
    assert users(cluster) == {("alice", 1)}


@pytest.mark.parametrize(
    ("change", "code", "sentence"),
    [
        (upsertion(""), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        (deletion(""), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        (upsertion("x", mechanism=0), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (deletion("x", mechanism=3), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (upsertion("x", iterations=4095), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"),
        (upsertion("x", iterations=16385), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations"),
        (
            deletion("x"),
            ErrorCode.RESOURCE_NOT_FOUND,
            "Attempt to delete a user credential that does not exist",
        ),
    ],
)
def test_what_is_refused_does_not_stop_the_others(
    change: ScramCredentialUpsertion | ScramCredentialDeletion, code: ErrorCode, sentence: str
) -> None:
    cluster = Cluster()
    assert alter(cluster, change, upsertion("other")) == {change.name: (code, sentence), "other": NONE}
    assert users(cluster) == {("other", 1)}


@pytest.mark.parametrize(
    "changes",
    [
        (upsertion("alice"), upsertion("alice", mechanism=2)),
        (deletion("alice"), upsertion("alice")),
        (deletion("alice"), deletion("alice")),
        (deletion("alice"), deletion("alice"), upsertion("alice")),
    ],
)
def test_a_user_who_is_named_twice_stays_as_he_was(
    changes: tuple[ScramCredentialUpsertion | ScramCredentialDeletion, ...],
) -> None:
    cluster = Cluster()
    alter(cluster, upsertion("alice"))
    assert alter(cluster, *changes, upsertion("bob")) == {"alice": TWICE, "bob": NONE}
    assert users(cluster) == {("alice", 1), ("bob", 1)}
