"""The file `meta.properties` of a log directory: which cluster and node it belongs to, and its own id (KIP-858).

Kafka: `MetaProperties`, `BrokerMetadataCheckpoint`.

version=1
cluster.id=YW5jaG9yLWthZmthLTAwMQ
node.id=0
directory.id=I5Tx8WGhDP6UXWu55eo2aQ
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from typing import Final
from uuid import UUID

from msgspec import Struct

from ....protocol.errors import ConfigError
from ....protocol.ids import NodeId

META_PROPERTIES: Final = "meta.properties"
_VERSION: Final = "1"
# A directory id never has this first letter: on a command line it would look like an option.
_FORBIDDEN_START: Final = "-"
# Ids below this have a meaning of their own in the protocol: unassigned, lost, migrating.
_RESERVED_IDS: Final = 100


class MetaProperties(Struct, frozen=True, kw_only=True):
    cluster_id: str
    node_id: NodeId
    # None in a directory that an older release formatted: it gets one.
    directory_id: UUID | None


def uuid_text(value: UUID) -> str:
    """Kafka's text form of an id: URL-safe base64 without padding."""
    return urlsafe_b64encode(value.bytes).rstrip(b"=").decode()


def is_usable_id(value: UUID) -> bool:
    """Whether Kafka could have drawn this id at random."""
    return value.int >= _RESERVED_IDS and not uuid_text(value).startswith(_FORBIDDEN_START)


def encode_meta_properties(properties: MetaProperties) -> bytes:
    lines = [f"version={_VERSION}", f"cluster.id={properties.cluster_id}", f"node.id={properties.node_id}"]
    if properties.directory_id is not None:
        lines.append(f"directory.id={uuid_text(properties.directory_id)}")
    return ("\n".join(lines) + "\n").encode()


def decode_meta_properties(data: bytes, path: str) -> MetaProperties:
    """ConfigError when `data` is not such a file, or of a version that this node cannot continue."""
    fields = {}
    for line in data.decode("utf-8", "replace").splitlines():
        name, separator, value = line.partition("=")
        if separator and not line.startswith(("#", "!")):
            fields[name.strip()] = value.strip().replace("\\", "")
    if fields.get("version") != _VERSION:
        raise ConfigError(f"{path} has version {fields.get('version', 'none')}, but only version {_VERSION} is known.")
    try:
        directory_id = fields.get("directory.id")
        return MetaProperties(
            cluster_id=fields["cluster.id"],
            node_id=NodeId(int(fields["node.id"])),
            directory_id=None if directory_id is None else UUID(bytes=urlsafe_b64decode(directory_id + "==")),
        )
    except (KeyError, ValueError, Base64Error) as error:
        raise ConfigError(f"{path} cannot be read: {error!r}.") from None
