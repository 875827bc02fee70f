"""The file `partition.metadata`: which topic id a partition's folder belongs to (KIP-516).

version: 0
topic_id: <the 16 bytes in URL-safe base64, without padding>
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from typing import Final
from uuid import UUID

from ...protocol.errors import CorruptData, ErrorCode, KafkaError
from ...protocol.ids import TopicId
from ..disk.files import Files
from .rules.file_names import PARTITION_METADATA

_HEAD: Final = b"version: 0\ntopic_id: "
# With the 22 digits of the id.
_SIZE_BYTES: Final = 43


def encode_partition_metadata(topic_id: TopicId) -> bytes:
    return _HEAD + urlsafe_b64encode(topic_id.bytes).rstrip(b"=")


def decode_partition_metadata(data: bytes, path: str) -> TopicId | None:
    """None when it is what a loss of power leaves of a file that was never synced; CorruptData when it is not valid."""
    written = data.partition(b"\0")[0]
    if len(written) < _SIZE_BYTES and (written.startswith(_HEAD) or _HEAD.startswith(written)):
        return None
    fields = dict(line.split(": ", 1) for line in data.decode("ascii", "replace").splitlines() if ": " in line)
    try:
        if fields["version"] != "0":
            raise CorruptData(f"{path} has version {fields['version']}, not 0")
        return TopicId(UUID(bytes=urlsafe_b64decode(fields["topic_id"] + "==")))
    except (KeyError, ValueError, Base64Error):
        raise CorruptData(f"{path} names no topic id") from None


def read_topic_id(files: Files, directory: str) -> TopicId | None:
    """The topic id of a partition's folder, None when it has none. CorruptData."""
    path = f"{directory}/{PARTITION_METADATA}"
    try:
        return decode_partition_metadata(files.read(path), path)
    except FileNotFoundError:
        return None


def agree_on_topic_id(
    files: Files, directory: str, topic_id: TopicId | None, *, found: TopicId | None
) -> TopicId | None:
    """The topic id of the folder, `found` there, or else `topic_id`, which it gets. KafkaError INCONSISTENT_TOPIC_ID.

    The file is not synced: that is done when the log is for the first time (`recovery_point.py`).
    """
    if found is None:
        if topic_id is not None:
            files.write(f"{directory}/{PARTITION_METADATA}", encode_partition_metadata(topic_id))
        return topic_id
    if topic_id not in (None, found):
        raise KafkaError(
            ErrorCode.INCONSISTENT_TOPIC_ID, f"{directory} belongs to the topic id {found}, not to {topic_id}"
        )
    return found
