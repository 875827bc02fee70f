"""What the records of Kafka's internal topics mean, for `penstock log dump`."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from ...protocol.errors import CorruptData
from ...storage.directories.rules.meta_properties import uuid_text
from ..coordination.record_format import RecordFormat, version_of
from ..groups.classic.records import (
    GROUP_METADATA_KEY,
    GROUP_METADATA_KEYS,
    GROUP_METADATA_VALUE,
    OFFSET_COMMIT_KEY,
    OFFSET_COMMIT_KEYS,
    OFFSET_COMMIT_VALUE,
)
from ..groups.consumer.records import (
    CURRENT_MEMBER_KEY,
    CURRENT_MEMBER_VALUE,
    GROUP_EPOCH_KEY,
    GROUP_EPOCH_VALUE,
    REGULAR_EXPRESSION_KEY,
    REGULAR_EXPRESSION_VALUE,
    SUBSCRIPTION_KEY,
    SUBSCRIPTION_VALUE,
    TARGET_EPOCH_KEY,
    TARGET_EPOCH_VALUE,
    TARGET_MEMBER_KEY,
    TARGET_MEMBER_VALUE,
)
from ..transactions.transaction_records import TRANSACTION_LOG_KEY, TRANSACTION_LOG_KEYS, TRANSACTION_LOG_VALUE

_Formats = tuple[str, RecordFormat[Any], RecordFormat[Any]]

_GROUP_FORMATS: Final[Mapping[int, _Formats]] = {
    **dict.fromkeys(OFFSET_COMMIT_KEYS, ("offset_commit", OFFSET_COMMIT_KEY, OFFSET_COMMIT_VALUE)),
    **dict.fromkeys(GROUP_METADATA_KEYS, ("group_metadata", GROUP_METADATA_KEY, GROUP_METADATA_VALUE)),
    3: ("consumer_group_metadata", GROUP_EPOCH_KEY, GROUP_EPOCH_VALUE),
    5: ("consumer_group_member_metadata", SUBSCRIPTION_KEY, SUBSCRIPTION_VALUE),
    6: ("consumer_group_target_assignment_metadata", TARGET_EPOCH_KEY, TARGET_EPOCH_VALUE),
    7: ("consumer_group_target_assignment_member", TARGET_MEMBER_KEY, TARGET_MEMBER_VALUE),
    8: ("consumer_group_current_member_assignment", CURRENT_MEMBER_KEY, CURRENT_MEMBER_VALUE),
    16: ("consumer_group_regular_expression", REGULAR_EXPRESSION_KEY, REGULAR_EXPRESSION_VALUE),
}
_TRANSACTION_FORMATS: Final[Mapping[int, _Formats]] = dict.fromkeys(
    TRANSACTION_LOG_KEYS, ("transaction_log", TRANSACTION_LOG_KEY, TRANSACTION_LOG_VALUE)
)


def decode_offsets_record(key: bytes | None, value: bytes | None) -> Mapping[str, Any]:
    """One of `__consumer_offsets`. CorruptData."""
    return _decode(_GROUP_FORMATS, key, value)


def decode_transaction_record(key: bytes | None, value: bytes | None) -> Mapping[str, Any]:
    """One of `__transaction_state`. CorruptData."""
    return _decode(_TRANSACTION_FORMATS, key, value)


def _decode(formats: Mapping[int, _Formats], key: bytes | None, value: bytes | None) -> Mapping[str, Any]:
    version = version_of(key or b"")
    found = formats.get(version)
    if found is None:
        # Of a kind of group that this release does not have: shown as it is.
        return {
            "type": f"unknown key version {version}",
            "key_base64": b64encode(key or b"").decode(),
            "value_base64": None if value is None else b64encode(value).decode(),
        }
    name, key_format, value_format = found
    try:
        return {
            "type": name,
            "key": _plain(key_format.read(key or b"")),
            "value": None if value is None else _plain(value_format.read(value)),
        }
    except CorruptData as error:
        raise CorruptData(f"a record of type {name} {error}") from None


def _plain(value: object) -> Any:
    """As JSON has it."""
    match value:
        case UUID():
            return uuid_text(value)
        case bytes():
            return b64encode(value).decode()
        case tuple():
            fields = getattr(value, "_fields", None)
            if fields is None:
                return [_plain(one) for one in value]
            return {name: _plain(one) for name, one in zip(fields, value, strict=True)}
        case _:
            return value
