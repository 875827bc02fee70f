"""In whose name a node asks the controller, and by which permissions.

The broker asks its authorizer, whose ACLs may be older than the controller's. So it tells the controller what was
allowed, and the controller decides nothing that its own ACLs do not allow. Kafka: `EnvelopeRequest` (KIP-590), which
carries the principal, and has the controller ask alone.
"""

from typing import ClassVar, NamedTuple

import cbor2

from ...protocol.acls import AclOperation
from ...protocol.errors import CorruptData, ErrorCode, KafkaError
from ..metadata.image import MetadataImage
from ..raft.cbor_errors import CBOR_ERRORS
from .ruling import AuthorizerSettings, rule


class Permission(NamedTuple):
    """An operation on a resource, by the numbers of `protocol/acls.py`."""

    operation: int
    resource_type: int
    resource_name: str


class Requester(NamedTuple):
    """A client: its principal as "type:name", its address, and the permissions by which the broker passed its request
    on; then what its quota of changes needs (`quorum/decisions/mutation_quota.py`)."""

    principal: str
    host: str
    permissions: tuple[Permission, ...] = ()
    client_id: str | None = None
    is_strict: bool = True
    """Whether what exceeds the quota is refused: the version of the API that the client asked by knows the code."""


class PermissionsChangedError(KafkaError):
    """The ACLs of the controller do not allow any more what those of the broker did: nothing was done."""

    CODE: ClassVar = ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    def __init__(self) -> None:
        super().__init__(self.CODE)


def check_requester(image: MetadataImage, settings: AuthorizerSettings | None, requester: Requester) -> None:
    """Raises PermissionsChangedError unless the ACLs of the image allow all of it."""
    if settings is None:
        return
    for operation, resource_type, name in requester.permissions:
        ruling = rule(
            image.acls,
            settings,
            requester.principal,
            requester.host,
            AclOperation(operation),
            (resource_type, name),
        )
        if not ruling.is_allowed:
            raise PermissionsChangedError


def encode_requester(requester: Requester) -> bytes:
    """Return it as CBOR: [principal, host, [[operation, type, name], …], client id or null, is strict]."""
    permissions = [list(one) for one in requester.permissions]
    return cbor2.dumps([requester.principal, requester.host, permissions, requester.client_id, requester.is_strict])


def decode_requester(data: bytes) -> Requester:
    """Raises CorruptData."""
    try:
        principal, host, permissions, client_id, is_strict = cbor2.loads(data)
        return Requester(
            str(principal),
            str(host),
            tuple(_permission(*one) for one in permissions),
            None if client_id is None else str(client_id),
            bool(is_strict),
        )
    except (*CBOR_ERRORS, AttributeError) as error:
        raise CorruptData(f"expected a requester, found {data[:20].hex()}…: {error}") from error


def _permission(operation: int, resource_type: int, name: str) -> Permission:
    return Permission(int(AclOperation(operation)), int(resource_type), str(name))
