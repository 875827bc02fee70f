"""All jobs by name. Their modules are loaded when they are asked for."""

from __future__ import annotations

import importlib
from typing import Any, Final

from ..job import Job

HELP: Final[dict[str, str]] = {
    "backfill": "Copy a bounded part of topics into others once more, repartitioned, exactly once.",
    "cdc": "A compacted topic of changes into a table with the last row of each key; deletes are honoured.",
    "join": "Two streams within bounds of time, or a stream with a compacted topic as a table, to a topic and a table.",
    "lake": "Topics into a table of Parquet, Delta or Iceberg, each record exactly once.",
    "mirror": "Copy topics of one or several clusters into another exactly once, with their consumer groups.",
    "check": "The verdict on a history or on topics of numbered records that outgrow one machine.",
    "windows": "Counts and aggregates by event time, with a watermark and late records, to a topic and a table.",
}
"""Of each job, said here so that a list of them loads none."""


def find_job(name: str) -> Job[Any]:
    """Raises KeyError."""
    if name not in HELP:
        raise KeyError(name)
    job: Job[Any] = importlib.import_module(f".{name}", __package__).JOB
    return job
