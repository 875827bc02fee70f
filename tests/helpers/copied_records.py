"""Records of two topics compared: what a copy has lost, doubled, moved or changed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from confluent_kafka import Message


@dataclass(frozen=True, slots=True)
class Copied:
    """All of a record but its offset."""

    partition: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int


def records_of(messages: Iterable[Message]) -> list[Copied]:
    """In the order given."""
    found = []
    for one in messages:
        partition, key, value = one.partition(), one.key(), one.value()
        assert partition is not None, "it has been consumed"
        headers = tuple((name, content) for name, content in _pairs(one.headers()))
        found.append(Copied(partition, key, value, headers, int(one.timestamp()[1])))
    return found


def _pairs(headers: object) -> list[tuple[str, bytes | None]]:
    return headers if isinstance(headers, list) else []


def differences(wanted: Sequence[Copied], found: Sequence[Copied]) -> list[str]:
    """None for the same records in the same order in each partition. Both in the order of their logs."""
    findings = []
    wanted_count, found_count = Counter(wanted), Counter(found)
    findings += [f"lost: {one}" for one in (wanted_count - found_count).elements()]
    findings += [f"doubled or made up: {one}" for one in (found_count - wanted_count).elements()]
    if not findings:
        logs, copies = _by_partition(wanted), _by_partition(found)
        findings = [f"partition {number} has another order" for number in logs if logs[number] != copies[number]]
    return findings


def _by_partition(records: Sequence[Copied]) -> dict[int, list[Copied]]:
    found: dict[int, list[Copied]] = defaultdict(list)
    for one in records:
        found[one.partition].append(one)
    return found
