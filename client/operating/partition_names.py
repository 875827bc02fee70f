"""`TOPIC` and `TOPIC:PARTITION` on the command line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import click

from ...protocol.rest.elections import PartitionName, PartitionOutcome


class NamedPartitions(NamedTuple):
    """Whole topics, and single partitions; both empty: all."""

    topics: list[str]
    partitions: list[PartitionName]


def parse_partitions(texts: Iterable[str]) -> NamedPartitions:
    """Raises UsageError."""
    topics, partitions = [], []
    for text in texts:
        topic, colon, index = text.partition(":")
        if not topic or (colon and not (index.isascii() and index.isdecimal())):
            raise click.UsageError(f"{text!r} is not TOPIC or TOPIC:PARTITION.")
        if colon:
            partitions.append(PartitionName(topic=topic, partition=int(index)))
        else:
            topics.append(topic)
    return NamedPartitions(topics, partitions)


def check_outcomes(results: Iterable[PartitionOutcome], *, what: str) -> None:
    """Raises ClickException with a line for each partition that was refused; `what`: such as `elected`."""
    lines = [
        f"{one.topic}-{one.partition} was not {what}: {(one.message or '').rstrip('.')} ({one.error})."
        for one in results
        if one.error_code
    ]
    if lines:
        raise click.ClickException("\n".join(lines))
