"""The MBeans of Apache Kafka are told, or absent for a reason that docs/metrics.md gives."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from penstock.broker.metrics.rules.absent_metrics import ABSENT, reason_for
from penstock.broker.metrics.rules.catalog import catalog

# Listed over JMX from one node of Apache Kafka 4.3.1, broker and controller, that had topics, groups of both protocols
# and transactions; without the keys that name topics, clients and the like.
MBEANS = (Path(__file__).parent / "mbeans_kafka_4_3_1.txt").read_text().splitlines()


def told() -> set[str]:
    """As the file has them: attributes in parentheses where there is no name."""
    found = set()
    for metrics in catalog().values():
        for metric in metrics:
            name, _, _ = metric.mbean.partition(" (")
            found.add(name if ",name=" in name else metric.mbean)
    return found


def test_every_mbean_of_kafka_is_told_or_absent_for_a_reason() -> None:
    known = told()
    assert len(known & set(MBEANS)) > 100
    assert [name for name in MBEANS if name not in known and reason_for(name) is None] == []


def test_what_is_told_is_not_called_absent() -> None:
    # A pattern may cover all attributes of an MBean of which some are told by others.
    assert [name for name in told() if ",name=" in name and reason_for(name) is not None] == []


@pytest.mark.parametrize("pattern", [pattern for one in ABSENT for pattern in one.mbeans])
def test_a_pattern_covers_something_that_kafka_tells(pattern: str) -> None:
    assert any(fnmatchcase(name, pattern) for name in MBEANS)
