"""Permissions, credentials, tokens and quotas of an image as a tree of names.

As in Apache Kafka's metadata shell, secrets of credentials and all that is known of a delegation token are hidden.
"""

from typing import Final

from ...decisions.answers import base64_id
from ...metadata.image import MetadataImage
from ...metadata.security_image import QuotaEntity, ScramCredential
from .tree import Folder, Leaf, Node, folder

_MECHANISMS: Final = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
_ENTITY_TYPES: Final = {"client-id": "clientId"}
_REDACTED: Final = "[redacted]"


def acls(image: MetadataImage) -> Folder:
    """Return each ACL under its id."""
    return folder({base64_id(acl_id): Leaf(str(acl)) for acl_id, acl in image.acls.by_id.items()})


def client_quotas(image: MetadataImage) -> Folder:
    """Return the values of each entity by their keys."""
    children: dict[str, Node] = {
        _entity(entity): folder({key: Leaf(str(value)) for key, value in sorted(values.items())})
        for entity, values in image.client_quotas.items()
    }
    return folder(dict(sorted(children.items())))


def scram_credentials(image: MetadataImage) -> Folder:
    """Return the users of each mechanism that has any."""
    users: dict[str, dict[str, Node]] = {}
    for (name, mechanism), credential in sorted(image.scram_credentials.items()):
        users.setdefault(_MECHANISMS.get(mechanism, str(mechanism)), {})[name] = Leaf(_credential(credential))
    return folder({mechanism: folder(of_mechanism) for mechanism, of_mechanism in users.items()})


def delegation_tokens(image: MetadataImage) -> Folder:
    """Return a leaf for each token."""
    text = (
        f"DelegationTokenData(tokenId={_REDACTED}, owner={_REDACTED}, tokenRequester={_REDACTED}, "
        f"renewers={_REDACTED}, issueTimestamp={_REDACTED}, maxTimestamp={_REDACTED}, expiryTimestamp={_REDACTED})"
    )
    return folder({token_id: Leaf(text) for token_id in sorted(image.delegation_tokens)})


def _entity(entity: QuotaEntity) -> str:
    return "_".join(
        f"{_ENTITY_TYPES.get(kind, kind)}({'<default>' if name is None else _escaped(name)})" for kind, name in entity
    )


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")


def _credential(credential: ScramCredential) -> str:
    return (
        f"ScramCredentialData(salt={_REDACTED}, storedKey={_REDACTED}, serverKey={_REDACTED}, "
        f"iterations={credential.iterations})"
    )
