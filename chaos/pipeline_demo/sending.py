"""Sends a table into its topic in the order of its events' times: the file of flights has its months in another one."""

from __future__ import annotations

from pathlib import Path

import click

from ...client.bootstrap import Bootstrap
from ...client.record_input import RecordToSend
from ...client.sender import Sender
from ..demo.dataset import open_table
from ..demo.rows import records_of
from ..demo.sources import Source


def send(bootstrap: Bootstrap, source: Source, tables: Path) -> None:
    """As it happened, and as a stream would bring it. Raises ClickException when a record is refused."""
    with open_table(tables / source.file) as lines:
        records = sorted(records_of(source, lines), key=_time)
    sender = Sender(bootstrap, source.topic, compression="lz4")
    for record in records:
        sender.send(record)
        if sender.has_failed:
            break
    sent = sender.finish()
    if sent.first_error is not None:
        raise click.ClickException(f"Topic {source.topic}: {bootstrap.sentence(sent.first_error)}")


def _time(record: RecordToSend) -> int:
    return record.timestamp_ms or 0
