"""The file `partition.metadata`: which topic id a partition's folder belongs to (KIP-516).

version: 0
topic_id: <the 16 bytes in URL-safe base64, without padding>
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from uuid import UUID

from ..protocol.errors import CorruptData, ErrorCode, KafkaError
from .file_names import PARTITION_METADATA
from .files import Files


def encode_partition_metadata(topic_id: UUID) -> bytes:
    return b"version: 0\ntopic_id: " + urlsafe_b64encode(topic_id.bytes).rstrip(b"=")


def decode_partition_metadata(data: bytes, path: str) -> UUID:
    """CorruptData when `data` is not such a file."""
    fields = dict(line.split(": ", 1) for line in data.decode("ascii", "replace").splitlines() if ": " in line)
    try:
        if fields["version"] != "0":
            raise CorruptData(f"{path} has version {fields['version']}, not 0")
        return UUID(bytes=urlsafe_b64decode(fields["topic_id"] + "=="))
    except (KeyError, ValueError, Base64Error):
        raise CorruptData(f"{path} names no topic id") from None


def agree_on_topic_id(files: Files, directory: str, topic_id: UUID | None) -> UUID | None:
    """The topic id of the folder, which gets `topic_id` when it has none. KafkaError INCONSISTENT_TOPIC_ID else."""
    path = f"{directory}/{PARTITION_METADATA}"
    if files.exists(path):
        found = decode_partition_metadata(files.read(path), path)
        if topic_id is not None and topic_id != found:
            raise KafkaError(
                ErrorCode.INCONSISTENT_TOPIC_ID, f"{directory} belongs to the topic id {found}, not to {topic_id}"
            )
        return found
    if topic_id is not None:
        files.write_atomically(path, encode_partition_metadata(topic_id))
    return topic_id
