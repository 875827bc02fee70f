"""Where a group is to go on: a plan of offsets, from a position or from a file, before anything is done."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from typing import TextIO

import click
from msgspec import Struct

from .groups import Groups, Place
from .positions import AtOffset, Position
from .reader import resolve_ranges


class Reset(Struct, frozen=True, kw_only=True):
    topic: str
    partition: int
    # None when nothing was committed.
    committed: int | None
    offset: int


def plan_position(groups: Groups, places: Sequence[Place], position: Position) -> dict[Place, int]:
    """The offset that the position is now in each partition, within what is there. Raises ClickException,
    KafkaException."""
    planned: dict[Place, int] = {}
    for topic in sorted({topic for topic, _ in places}):
        partitions = [partition for name, partition in places if name == topic]
        for found in resolve_ranges(groups.topics, topic, partitions, start=position, end=None):
            planned[topic, found.partition] = found.start_offset
    return planned


def plan_shift(groups: Groups, committed: Mapping[Place, int], by: int) -> dict[Place, int]:
    """So many records on, or back, from what was committed, within what is there."""
    planned: dict[Place, int] = {}
    for (topic, partition), offset in committed.items():
        wanted = AtOffset(max(offset + by, 0))
        (found,) = resolve_ranges(groups.topics, topic, [partition], start=wanted, end=None)
        planned[topic, partition] = found.start_offset
    return planned


def read_plan(lines: TextIO) -> dict[Place, int]:
    """`topic,partition,offset` on each line, as `--csv` and Kafka's own tool write them. Raises ClickException."""
    planned: dict[Place, int] = {}
    for number, row in enumerate(csv.reader(lines), 1):
        if not row:
            continue
        try:
            topic, partition, offset = row
            place = (topic.strip(), int(partition))
            if place in planned or place[1] < 0 or int(offset) < 0:
                raise ValueError
            planned[place] = int(offset)
        except ValueError:
            raise click.ClickException(
                f"Line {number} of the file is {','.join(row)!r}, not a new topic,partition,offset."
            ) from None
    return planned


def chosen_places(groups: Groups, wanted: Iterable[str]) -> list[Place]:
    """Of `TOPIC` all partitions, of `TOPIC:0,2` these. Raises ClickException for what does not exist."""
    places: list[Place] = []
    for text in wanted:
        name, colon, numbers = text.rpartition(":")
        if not colon:
            name, numbers = text, ""
        (state,) = groups.topics.describe([name])
        present = [one.partition for one in state.partitions]
        try:
            chosen = [int(number) for number in numbers.split(",")] if numbers else present
        except ValueError:
            raise click.ClickException(f"{text!r} is no topic, nor TOPIC:PARTITION,….") from None
        if missing := sorted(set(chosen) - set(present)):
            raise click.ClickException(f"Topic {name!r} has no partition {missing[0]}; its last one is {max(present)}.")
        places += [(name, partition) for partition in chosen]
    return sorted(set(places))
