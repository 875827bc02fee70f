"""In whose name nodes ask the controller, and what it checks again."""

from uuid import UUID

import cbor2
import pytest

from penstock.protocol.acls import AclOperation, PatternType, PermissionType, ResourceType
from penstock.protocol.errors import CorruptData
from penstock.quorum.metadata.acls import Acl, AclsImage
from penstock.quorum.metadata.image import MetadataImage
from penstock.quorum.permissions.requester import (
    Permission,
    PermissionsChangedError,
    Requester,
    check_requester,
    decode_requester,
    encode_requester,
)
from penstock.quorum.permissions.ruling import AuthorizerSettings

CREATE = Permission(AclOperation.CREATE, ResourceType.TOPIC, "t")
ALICE = Requester("User:CN=alice,O=x", "10.0.0.1", (CREATE,))
SETTINGS = AuthorizerSettings(super_users=frozenset({"User:admin"}))


def test_a_requester_comes_back_from_its_bytes() -> None:
    for requester in (ALICE, Requester("User:b", "::1"), ALICE._replace(client_id="app", is_strict=False)):
        assert decode_requester(encode_requester(requester)) == requester


@pytest.mark.parametrize(
    "data", [b"", b"\xff", cbor2.dumps(1), cbor2.dumps(["a", "b"]), cbor2.dumps(["a", "b", [[99, 2, "t"]]])]
)
def test_what_is_no_requester_is_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptData, match="expected a requester"):
        decode_requester(data)


def test_the_controller_s_acls_decide() -> None:
    acl = Acl(
        ResourceType.TOPIC, "t", PatternType.LITERAL, ALICE.principal, "*", AclOperation.CREATE, PermissionType.ALLOW
    )
    allowing = MetadataImage(acls=AclsImage().changed({UUID(int=1): acl}))
    check_requester(allowing, SETTINGS, ALICE)
    check_requester(MetadataImage(), None, ALICE)
    check_requester(MetadataImage(), SETTINGS, Requester("User:admin", "h", (CREATE,)))
    check_requester(MetadataImage(), SETTINGS, Requester(ALICE.principal, "h"))
    with pytest.raises(PermissionsChangedError):
        check_requester(MetadataImage(), SETTINGS, ALICE)
    other = Permission(AclOperation.DELETE, ResourceType.TOPIC, "t")
    with pytest.raises(PermissionsChangedError):
        check_requester(allowing, SETTINGS, ALICE._replace(permissions=(CREATE, other)))
