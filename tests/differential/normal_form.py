"""What is compared: answers in which everything that must differ from run to run has a name instead of its value."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from differential.record_views import view

from penstock.protocol.errors import ErrorCode

HOUR_MS = 3_600_000
BEFORE_NOW_MS = HOUR_MS * 3 // 2
"""How long before a run its base lies. Times that a script gives are within a minute of whole hours from the base;
those that a broker read from its clock, or counted from it, are half an hour off and can be told from them, as long as
the run takes less than half an hour: each has a base of its own."""

_MINUTE_MS = 60_000
_WINDOW_MS = 1_000 * HOUR_MS

_LONG_NUMBERS = re.compile(r"-?\d{13,}")
# A clock less the largest number there is: the lower end of what has no lower end. The least number stays as it is.
_LONG_AGO = -(2**63) + 2**50

_ZERO_ID = UUID(int=0)
_TIMES = re.compile(r"timestamp|log_append_time|transaction_start_time")
_KEYS = (
    "entity_type",
    *("topic_name", "resource_name", "name", "topic", "topic_id", "key", "log_dir", "api_key"),
    "transactional_id",
    *("partition_index", "partition", "index", "broker_id", "node_id", "producer_id", "batch_index", "base_offset"),
)
_IDENTITIES = {"producer_id": "producer", "session_id": "session"}
_HIDDEN = {
    "total_bytes": "<bytes>",
    "usable_bytes": "<bytes>",
    "port": "<port>",
    "finalized_features_epoch": "<epoch>",
    "log_dir": "<log dir>",
    "cluster_id": "<cluster>",
}


class Names:
    """What stands for topic ids, producer ids, sessions, addresses and times of one run."""

    def __init__(self, base_ms: int, words: Mapping[str, str]) -> None:
        self.base_ms = base_ms
        self._texts = dict(words)
        self._ids: dict[UUID, str] = {_ZERO_ID: "<no id>"}
        self._numbers: dict[tuple[str, int], str] = {}

    def topic(self, topic_id: UUID, name: str) -> None:
        self._ids[topic_id] = f"<id of {name}>"
        self._texts[base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")] = f"<id of {name}>"

    def number(self, field: str, value: int) -> str | int:
        """A name for a producer id or a session, by the order in which they were seen."""
        kind = _IDENTITIES[field]
        if value < 0 or (value == 0 and kind == "session"):
            return value
        count = sum(1 for known, _ in self._numbers if known == kind)
        return self._numbers.setdefault((kind, value), f"<{kind} {count + 1}>")

    def text(self, value: str) -> str:
        for word in sorted(self._texts, key=len, reverse=True):
            value = value.replace(word, self._texts[word])
        return _LONG_NUMBERS.sub(lambda found: str(self.time(int(found[0]))), value)

    def id(self, value: UUID) -> str:
        """Ids that a script made up are small numbers and stand for themselves; one that no topic got is new."""
        return self._ids.get(value) or (str(value) if value.int < 2**32 else "<new id>")

    def time(self, value: int) -> str | int:
        if -(2**63) < value < _LONG_AGO:
            return "<long ago>"
        distance = value - self.base_ms
        if abs(distance) > _WINDOW_MS:
            return value
        from_hour = (distance + _MINUTE_MS) % HOUR_MS
        return f"base{distance:+}" if from_hour < 2 * _MINUTE_MS else "<clock>"


def normal(value: Any, names: Names, field: str = "") -> Any:
    """`value` as plain values for JSON. Items that have a name or a number of their own are sorted by it."""
    if isinstance(value, dict):
        return {name: _field(name, one, names) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        items = [normal(one, names, field) for one in value]
        return sorted(items, key=_key) if all(isinstance(one, dict) for one in items) else items
    if isinstance(value, UUID):
        return names.id(value)
    if isinstance(value, str):
        return names.text(value)
    if isinstance(value, bytes):
        return value.hex()
    return value


def _field(name: str, value: Any, names: Names) -> Any:
    if name == "records" and (value is None or isinstance(value, bytes)):
        return normal(view(value), names)
    if name in _IDENTITIES and isinstance(value, int):
        return names.number(name, value)
    if name in _HIDDEN and not (isinstance(value, int) and value < 0) and value is not None:
        return _HIDDEN[name]
    if name.endswith("error_code") and isinstance(value, int):
        return ErrorCode(value).name if value in set(ErrorCode) else value
    if _TIMES.search(name) and isinstance(value, int):
        return names.time(value)
    return normal(value, names, name)


def _key(item: dict[str, Any]) -> list[tuple[bool, Any]]:
    """By name and number; numbers before texts."""
    key: list[tuple[bool, Any]] = []
    for name in _KEYS:
        value = item.get(name)
        if value is not None:
            key.append((isinstance(value, str), value))
    # A quota's: who it is for, which is sorted itself.
    key.extend((True, str(part)) for part in item.get("entity") or ())
    return key
