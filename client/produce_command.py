"""`penstock produce`: lines of a file or of standard input become records of a topic."""

import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO, Final

import click

from . import clock
from .bootstrap import Bootstrap, bootstrap_options
from .partitioners import MURMUR2, ROUND_ROBIN, Partitioner, UnknownPartitionerError, partitioner_of
from .record_input import InputError, JsonLines, LineFormat, TextLines, parse_header
from .sender import Sender, Sent
from .terminal import Progress, print_json, progress, say
from .topic_completion import complete_topics
from .units import format_bytes, format_count, format_records, format_seconds

# Kafka's and librdkafka's names; the client counts the rest of what idempotence needs by itself.
_ACKS: Final = ("0", "1", "all")
_COMPRESSIONS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
# Looking at the clock and drawing cost more than a record.
_RECORDS_PER_REPORT: Final = 500


def _partitioner(context: click.Context, parameter: click.Parameter, name: str) -> Partitioner | None:
    # The console script does not look for modules in the current folder, where a person keeps a partitioner.
    sys.path.append(os.getcwd())
    try:
        return partitioner_of(name)
    except UnknownPartitionerError as error:
        raise click.BadParameter(str(error), ctx=context, param=parameter) from error


def _headers(context: click.Context, parameter: click.Parameter, texts: Sequence[str]) -> tuple[tuple[str, bytes], ...]:
    try:
        return tuple(parse_header(text) for text in texts)
    except InputError as error:
        raise click.BadParameter(str(error), ctx=context, param=parameter) from error


@click.command()
@click.argument("topic", shell_complete=complete_topics)
@click.argument("file", type=click.File("rb"), default="-")
@click.option("--json-lines", is_flag=True, help="Lines are records as `consume --json` prints them.")
@click.option(
    "--key-separator", "-k", metavar="TEXT", help="Stands between key and value; without it there are no keys."
)
@click.option("--null", metavar="TEXT", help="The text that stands for no key or no value.")
@click.option(
    "--header", "-H", "headers", metavar="NAME=VALUE", multiple=True, callback=_headers, help="For every record."
)
@click.option("--partition", "-p", type=click.IntRange(min=0), help="All records go to this partition.")
@click.option(
    "--partitioner",
    metavar=f"{MURMUR2}|{ROUND_ROBIN}|MODULE:FUNCTION",
    default=MURMUR2,
    show_default=True,
    callback=_partitioner,
    help="Who decides otherwise. murmur2 places keys as Java does; a function takes key, value, partition count.",
)
@click.option("--acks", type=click.Choice(_ACKS), default="all", show_default=True, help="Whom to wait for.")
@click.option("--compression", "-z", type=click.Choice(_COMPRESSIONS), default="none", show_default=True)
@click.option(
    "--idempotence/--no-idempotence", default=None, help="No duplicates from retries; on unless --acks is 0 or 1."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object about what was sent.")
@bootstrap_options
def produce(
    bootstrap: Bootstrap,
    topic: str,
    file: BinaryIO,
    json_lines: bool,
    key_separator: str | None,
    null: str | None,
    headers: tuple[tuple[str, bytes], ...],
    partition: int | None,
    partitioner: Partitioner | None,
    acks: str,
    compression: str,
    idempotence: bool | None,
    as_json: bool,
) -> None:
    """Send each line of FILE, or of standard input, to TOPIC as a record.

    It ends with the input, once all records are acknowledged; at the first that is refused it stops, with status 1.
    """
    if json_lines and (key_separator is not None or null is not None):
        raise click.UsageError("--key-separator and --null are for lines of text, not for --json-lines.")
    if key_separator == "":
        raise click.UsageError("--key-separator cannot be empty.")
    if idempotence and acks != "all":
        raise click.UsageError("--idempotence needs --acks all.")
    lines = JsonLines() if json_lines else TextLines(key_separator=_bytes(key_separator), null=_bytes(null))
    sender = Sender(
        bootstrap,
        topic,
        partition=partition,
        partitioner=partitioner,
        headers=headers,
        acks=acks,
        compression=compression,
        is_idempotent=acks == "all" if idempotence is None else idempotence,
    )
    started_s = clock.monotonic_s()
    stop: click.ClickException | None = None
    try:
        with _progress_of(file) as bar:
            _send_all(file, lines, sender, bar)
    except click.ClickException as error:
        # What was taken before the line that is no record is on its way, and reported like the rest.
        stop = error
    except KeyboardInterrupt:
        stop = click.ClickException("Interrupted.")
    sent = sender.finish()
    _report(bootstrap, topic, sent, clock.monotonic_s() - started_s, as_json=as_json)
    if sent.first_error is not None:
        raise click.ClickException(f"{format_records(sent.failed)} failed. {bootstrap.sentence(sent.first_error)}")
    if stop is not None:
        raise stop


def _send_all(file: BinaryIO, lines: LineFormat, sender: Sender, bar: Progress) -> None:
    is_file = _size_of(file) is not None
    bytes_read = 0
    for number, line in enumerate(file, start=1):
        bytes_read += len(line)
        text = line.removesuffix(b"\n").removesuffix(b"\r")
        try:
            sender.send(lines.parse(text))
        except InputError as error:
            raise click.ClickException(f"Line {format_count(number)} is not a record: {error}.") from error
        if sender.has_failed:
            return
        if number % _RECORDS_PER_REPORT == 0:
            bar.advance_to(bytes_read if is_file else number)


@contextmanager
def _progress_of(file: BinaryIO) -> Iterator[Progress]:
    size_bytes = _size_of(file)
    unit = "records" if size_bytes is None else "bytes"
    # Nothing is drawn while a person types the records.
    with progress("sending", total=size_bytes, unit=unit, shown=not file.isatty()) as bar:
        yield bar


def _size_of(file: BinaryIO) -> int | None:
    try:
        status = os.fstat(file.fileno())
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _report(bootstrap: Bootstrap, topic: str, sent: Sent, seconds: float, *, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "topic": topic,
                "records": sent.acknowledged,
                "failed": sent.failed,
                "bytes": sent.size_bytes,
                "seconds": round(seconds, 3),
                "partitions": {
                    str(partition): {"records": placed.count, "first_offset": placed.first, "last_offset": placed.last}
                    for partition, placed in sorted(sent.partitions.items())
                },
                "error": None if sent.first_error is None else bootstrap.sentence(sent.first_error),
            }
        )
        return
    rate = sent.acknowledged / seconds if seconds > 0 else 0
    say(
        f"{format_records(sent.acknowledged)}, {format_bytes(sent.size_bytes)}, to {topic} in"
        f" {format_seconds(seconds)} ({format_count(round(rate))} records/s)"
    )


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()
