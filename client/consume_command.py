"""`penstock consume`: records of a topic as lines of text or JSON."""

import sys
from collections.abc import Sequence
from typing import Final

import click

from . import clock
from .bootstrap import Bootstrap, bootstrap_options
from .group_reader import GroupReader
from .position_option import position_option
from .positions import SYNTAX, Edge, Position
from .reader import PartitionRange, Reader, resolve_ranges
from .record_output import (
    ENCODINGS,
    FormatError,
    JsonFormat,
    ReceivedRecord,
    RecordFormat,
    TemplateFormat,
    template_of_fields,
)
from .terminal import progress, say
from .topic_completion import complete_topics
from .topics import Topics
from .units import format_bytes, format_count, format_records, format_seconds


def _fields(_context: click.Context, _parameter: click.Parameter, text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(field.strip() for field in text.split(","))


_DEFAULT_FIELDS: Final = ("value",)


@click.command(epilog=f"A position is {SYNTAX}.")
@click.argument("topic", shell_complete=complete_topics)
@click.option(
    "--partition", "-p", "partitions", type=click.IntRange(min=0), multiple=True, help="Only this; repeatable."
)
@click.option("--from", "start", metavar="POSITION", default="earliest", show_default=True, callback=position_option)
@click.option(
    "--to", "end", metavar="POSITION", callback=position_option, help="Exclusive. Otherwise what is the end now."
)
@click.option("--follow", "-f", is_flag=True, help="Do not stop at the end; wait for more until Ctrl-C.")
@click.option(
    "--group",
    "-g",
    metavar="NAME",
    help="Read as a member of this consumer group, from where it has come to, and commit what was printed. "
    "--from then says where a new group begins: earliest or latest.",
)
@click.option("--max-messages", "-n", type=click.IntRange(min=1), help="Stop after so many records.")
@click.option(
    "--show",
    "-s",
    "fields",
    metavar="FIELD,…",
    callback=_fields,
    help=f"Columns with tabs between: {', '.join(TemplateFormat.FIELDS)}.",
)
@click.option("--format", "template", metavar="TEMPLATE", help=r"Such as '{partition}:{offset}\t{key}={value}'.")
@click.option(
    "--encoding",
    type=click.Choice(list(ENCODINGS)),
    default="raw",
    show_default=True,
    help="How text shows keys and values.",
)
@click.option(
    "--null", metavar="TEXT", default="null", show_default=True, help="Stands for no key or no value in text."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per record.")
@click.option("--quiet", "-q", is_flag=True, help="Say nothing on standard error when it ends well.")
@bootstrap_options
def consume(
    bootstrap: Bootstrap,
    topic: str,
    partitions: tuple[int, ...],
    start: Position,
    end: Position | None,
    follow: bool,
    group: str | None,
    max_messages: int | None,
    fields: tuple[str, ...] | None,
    template: str | None,
    encoding: str,
    null: str,
    as_json: bool,
    quiet: bool,
) -> None:
    """Print the records of TOPIC, each on a line. Without --group nothing is committed.

    It stops at what was the end when it began, or at --to; a member of a group when it has read all that it was
    given. Order holds within a partition, not between them.
    """
    if follow and end is not None:
        raise click.UsageError("--follow and --to exclude each other.")
    record_format = _format_of(fields, template, encoding, null, as_json=as_json)
    if group is not None:
        if partitions or end is not None or not isinstance(start, Edge):
            raise click.UsageError(
                "A member of a group reads what it is given: no --partition, no --to, --from an edge."
            )
        Topics(bootstrap).describe([topic])
        member = GroupReader(bootstrap, topic, group, start=start, is_followed=follow)
        _print_for_group(member, topic, record_format, max_messages=max_messages, quiet=quiet)
        return
    topics = Topics(bootstrap)
    (state,) = topics.describe([topic])
    present = [partition.partition for partition in state.partitions]
    if missing := sorted(set(partitions) - set(present)):
        raise click.ClickException(f"Topic {topic!r} has no partition {missing[0]}; its last one is {max(present)}.")
    chosen = sorted(set(partitions)) or present
    ranges = resolve_ranges(topics, topic, chosen, start=start, end=None if follow else end or Edge.LATEST)
    _print_records(bootstrap, topic, ranges, record_format, max_messages=max_messages, quiet=quiet)


def _print_for_group(
    member: GroupReader, topic: str, record_format: RecordFormat, *, max_messages: int | None, quiet: bool
) -> None:
    count = size_bytes = 0
    output = sys.stdout.buffer
    with member:
        try:
            for batch in member.batches():
                wanted = batch if max_messages is None else batch[: max_messages - count]
                output.write(b"".join(map(record_format.format, wanted)))
                output.flush()
                # What was printed and not committed is printed again by the next member that reads.
                member.commit(wanted)
                count += len(wanted)
                size_bytes += sum(map(_size_of, wanted))
                if count == max_messages:
                    break
        except KeyboardInterrupt:
            # The group is told, and gives the partitions to others at once.
            pass
    if not quiet:
        say(f"{format_records(count)}, {format_bytes(size_bytes)}, from {topic}")


def _print_records(
    bootstrap: Bootstrap,
    topic: str,
    ranges: Sequence[PartitionRange],
    record_format: RecordFormat,
    *,
    max_messages: int | None,
    quiet: bool,
) -> None:
    started_s = clock.monotonic_s()
    count = size_bytes = 0
    is_followed = any(part.end_offset is None for part in ranges)
    available = sum((part.end_offset or part.start_offset) - part.start_offset for part in ranges)
    total = None if is_followed else min(available, max_messages or available)
    output = sys.stdout.buffer
    # A terminal that shows the records has no room for a bar.
    shown = not quiet and not sys.stdout.isatty()
    with (
        progress("reading", total=total, unit="records", shown=shown) as bar,
        Reader(bootstrap, topic, ranges) as reader,
    ):
        try:
            for batch in reader.batches():
                wanted = batch if max_messages is None else batch[: max_messages - count]
                output.write(b"".join(map(record_format.format, wanted)))
                output.flush()
                count += len(wanted)
                size_bytes += sum(map(_size_of, wanted))
                bar.advance_to(count)
                if count == max_messages:
                    break
        except KeyboardInterrupt:
            # For --follow it is the way to end.
            if not is_followed:
                raise
    if not quiet:
        seconds = clock.monotonic_s() - started_s
        rate = "" if is_followed else f" ({format_count(round(count / max(seconds, 1e-9)))} records/s)"
        what = f"{format_records(count)}, {format_bytes(size_bytes)}"
        say(f"{what}, from {topic} in {format_seconds(seconds)}{rate}")


def _format_of(
    fields: tuple[str, ...] | None, template: str | None, encoding: str, null: str, *, as_json: bool
) -> RecordFormat:
    if sum((fields is not None, template is not None, as_json)) > 1:
        raise click.UsageError("--show, --format and --json exclude each other.")
    if as_json:
        return JsonFormat()
    try:
        return TemplateFormat(
            template_of_fields(fields or _DEFAULT_FIELDS) if template is None else template,
            encoding=encoding,
            null=null.encode(),
        )
    except FormatError as error:
        raise click.UsageError(f"{str(error)[:1].upper()}{str(error)[1:]}.") from error


def _size_of(record: ReceivedRecord) -> int:
    return len(record.key or b"") + len(record.value or b"")
