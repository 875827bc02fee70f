"""`penstock log export` and `import`: a partition's records from one cluster to another."""

from __future__ import annotations

from random import Random

import click

from ...client import clock
from ...client.operating.admin_options import json_option
from ...client.terminal import print_json
from ...protocol.errors import ConfigError, CorruptData
from ...protocol.structs import replace
from ...storage.disk.files import DiskFiles
from ...storage.offline.closed_directory import OfflineError, closed_partition
from ...storage.offline.partition_export import export_partition, export_source
from ...storage.offline.partition_import import import_partition
from .stored_configs import log_config_of, read_image, topic_configs_in, topic_id_in


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, resolve_path=True))
@click.argument("archive", type=click.Path(dir_okay=False, resolve_path=True))
@click.option(
    "--high-watermark",
    type=click.IntRange(min=0),
    metavar="OFFSET",
    help="Up to here the log is committed; the log directory's checkpoint unless told.",
)
@json_option
def export(folder: str, archive: str, *, high_watermark: int | None, as_json: bool) -> None:
    """Write a partition's FOLDER into ARCHIVE, a file .tar or .tar.gz: what is committed and decided.

    Works beside the node, which may have more than its checkpoint of the high watermark says: stop it to have all. For
    folders of Apache Kafka, too.
    """
    if not archive.endswith((".tar", ".tar.gz", ".tgz")):
        raise click.UsageError(f"{archive} has to end in .tar, .tar.gz or .tgz.")
    files = DiskFiles()
    if files.exists(archive):
        raise click.ClickException(f"{archive} exists already.")
    try:
        source = export_source(files, folder)
        if high_watermark is not None:
            source = replace(source, high_watermark=high_watermark)
        manifest = export_partition(
            files, source, archive, created_ms=clock.now_ms(), is_compressed=not archive.endswith(".tar")
        )
    except (OfflineError, CorruptData) as error:
        raise click.ClickException(str(error)) from error
    told = {
        "topic": manifest.topic,
        "partition": manifest.partition,
        "start_offset": manifest.start_offset,
        "end_offset": manifest.end_offset,
        "batches": manifest.batches,
        "records": manifest.records,
        "segments": len(manifest.segments),
        "archive": archive,
        "archive_bytes": files.size(archive),
    }
    if as_json:
        print_json(told)
    else:
        click.echo(
            f"{manifest.topic}-{manifest.partition}: offsets {manifest.start_offset} up to {manifest.end_offset}, "
            f"{manifest.records} records in {len(manifest.segments)} segments, are in {archive}."
        )


@click.command("import")
@click.argument("archive", type=click.Path(exists=True, dir_okay=False, resolve_path=True))
@click.option(
    "--into",
    "folder",
    required=True,
    type=click.Path(exists=True, file_okay=False, resolve_path=True),
    help="The folder of an empty partition in the log directory of a stopped node.",
)
@json_option
def import_archive(archive: str, *, folder: str, as_json: bool) -> None:
    """Bring the records of ARCHIVE into an empty partition, with their offsets, timestamps, keys and headers.

    Create the topic first, stop all nodes that have a replica of the partition, import on each of them, start them. A
    replica without the records could be elected, and the others would cut theirs off. A topic that is created with one
    replica needs one node to stop, and gets the others with `penstock reassign apply --plan` afterwards.
    """
    files = DiskFiles()
    try:
        with closed_partition(files, folder) as target:
            image = None if target.directory is None else read_image(files, target.directory.path)
            config = log_config_of(topic_configs_in(image, target.topic) or {})
            result = import_partition(
                files,
                archive,
                target,
                config,
                known_topic_id=topic_id_in(image, target.topic),
                now_ms=clock.now_ms(),
                random=Random(),
            )
    except (OfflineError, CorruptData, ConfigError) as error:
        raise click.ClickException(str(error)) from error
    manifest = result.manifest
    if as_json:
        print_json(
            {
                "start_offset": manifest.start_offset,
                "end_offset": manifest.end_offset,
                "records": result.kept_records,
                "bytes": result.size_bytes,
            }
        )
    else:
        click.echo(
            f"{result.kept_records} records of {manifest.topic}-{manifest.partition}, offsets {manifest.start_offset} "
            f"up to {manifest.end_offset}, are in {folder}."
        )
