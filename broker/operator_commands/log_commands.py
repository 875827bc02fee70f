"""`penstock log dump` and `verify`: the files of logs, looked at where they lie, those of Apache Kafka, too."""

from __future__ import annotations

from itertools import islice
from typing import Final

import click

from ...client.operating.admin_options import json_option
from ...client.terminal import print_json, say
from ...storage.disk.files import DiskFiles
from ...storage.inspection.dump import DumpOptions, NotOfALog, dump_rows
from ...storage.inspection.folder_check import check_folder, check_log_directory, is_partition_folder, partition_folders
from ...storage.inspection.rules.dump_rows import Decoder, as_text
from ...storage.inspection.rules.report import Finding, Report

_DECODERS: Final = ("auto", "none", "offsets", "transactions")


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH…")
@click.option("--records", "with_records", is_flag=True, help="Open the batches and show their records, too.")
@click.option("--from-offset", type=click.IntRange(min=0), default=0, metavar="OFFSET", help="Nothing below.")
@click.option("--to-offset", type=click.IntRange(min=0), metavar="OFFSET", help="Nothing from this one on.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Stop after so many lines.")
@click.option(
    "--decoder",
    type=click.Choice(_DECODERS),
    default="auto",
    show_default=True,
    help="What keys and values are: those of __consumer_offsets or __transaction_state, or plain. auto: by the folder.",
)
@click.option("--all", "with_all_files", is_flag=True, help="Of a folder: indexes, snapshots and checkpoints, too.")
@json_option
def dump(
    paths: tuple[str, ...],
    *,
    with_records: bool,
    from_offset: int,
    to_offset: int | None,
    limit: int | None,
    decoder: str,
    with_all_files: bool,
    as_json: bool,
) -> None:
    """Show what lies in files of a log: a segment, an index, a snapshot, a checkpoint, or a partition's folder.

    Works beside the node, and never writes. Keys and values that are no text are shown in base64.
    """
    files = DiskFiles(is_read_only=True)
    report = Report()
    left = limit
    for path in paths:
        options = DumpOptions(
            with_records=with_records,
            start_offset=from_offset,
            end_offset=to_offset,
            decode=_decoder_for(path, decoder),
            with_all_files=with_all_files,
        )
        try:
            for row in islice(dump_rows(files, _absolute(path), options, report), left):
                if as_json:
                    print_json(row)
                else:
                    click.echo(as_text(row))
                left = None if left is None else left - 1
        except NotOfALog as error:
            raise click.ClickException(str(error)) from error
    _say_findings(report)


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH…")
@click.option(
    "--shallow", is_flag=True, help="Do not open batches: CRCs, offsets, epochs, indexes and checkpoints only."
)
@json_option
def verify(paths: tuple[str, ...], *, shallow: bool, as_json: bool) -> None:
    """Check partitions' folders, or all of a log directory: each file by itself, and against the others.

    CRCs, records, offsets, leader epochs, offset, time and transaction indexes, producer snapshots, checkpoints. Works
    beside the node, and never writes. Exit status 1 when something is wrong.
    """
    files = DiskFiles(is_read_only=True)
    report = Report()
    for given in paths:
        path = _absolute(given)
        if not files.is_directory(path):
            raise click.ClickException(f"{path} is no folder: give a partition's folder or a log directory.")
        if is_partition_folder(files, path):
            check_folder(files, path, report, opens_records=not shallow)
        elif partition_folders(files, path):
            check_log_directory(files, path, report, opens_records=not shallow)
        else:
            raise click.ClickException(f"{path} is neither a partition's folder nor a log directory with one.")
    totals = report.totals
    if as_json:
        print_json(
            {
                "findings": [_finding(one) for one in report.findings],
                "notes": [_finding(one) for one in report.notes],
                "totals": {name: getattr(totals, name) for name in totals.__slots__},
            }
        )
    else:
        for note in report.notes:
            click.echo(f"note: {note}")
        for finding in report.findings:
            click.echo(f"wrong: {finding}")
        for path, count in report.suppressed.items():
            click.echo(f"wrong: {path}: the same {count} times more")
        click.echo(
            f"{totals.folders} partitions, {totals.segments} segments, {totals.bytes} bytes, {totals.batches} batches, "
            f"{totals.records} records, {totals.index_entries} index entries, "
            f"{totals.aborted_transactions} aborted and {totals.open_transactions} open transactions, "
            f"{totals.missing_offsets} offsets missing between others: "
            f"{'intact' if not report.findings else f'{len(report.findings)} things are wrong'}."
        )
    if report.findings:
        raise SystemExit(1)


def _decoder_for(path: str, name: str) -> Decoder | None:
    if name == "auto":
        parts = path.rstrip("/").split("/")[-2:]
        name = next(
            (kind for topic, kind in _INTERNAL.items() if any(part.startswith(topic) for part in parts)), "none"
        )
    if name == "none":
        return None
    from .log_decoders import decode_offsets_record, decode_transaction_record

    return decode_offsets_record if name == "offsets" else decode_transaction_record


_INTERNAL: Final = {"__consumer_offsets-": "offsets", "__transaction_state-": "transactions"}


def _absolute(path: str) -> str:
    return path.rstrip("/") or "/"


def _say_findings(report: Report) -> None:
    for one in report.notes:
        say(str(one))
    if report.findings:
        for one in report.findings:
            say(f"wrong: {one}")
        raise SystemExit(1)


def _finding(one: Finding) -> dict[str, object]:
    return {"path": one.path, "position": one.position, "sentence": one.sentence}
