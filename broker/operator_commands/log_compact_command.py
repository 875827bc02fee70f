"""`penstock log compact`: one pass of compaction over a partition's folder that no node uses."""

from __future__ import annotations

from typing import Final

import click
from msgspec import to_builtins

from ...client import clock
from ...client.operating.admin_options import json_option
from ...client.terminal import print_json
from ...protocol.errors import ConfigError, CorruptData
from ...storage.disk.files import DiskFiles
from ...storage.log.rules.config import LogConfig
from ...storage.offline.closed_directory import ClosedPartition, OfflineError, closed_partition
from ...storage.offline.folder_compaction import FolderCompaction, compact_folder
from .stored_configs import log_config_of, read_image, topic_configs_in

_MAP_MIB: Final = 128


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, resolve_path=True))
@click.option("--dry-run", is_flag=True, help="Change nothing; say what would become of the folder.")
@click.option("--force", is_flag=True, help="Also when the topic is not known to have cleanup.policy=compact.")
@click.option(
    "--metadata",
    "metadata_folder",
    type=click.Path(exists=True, file_okay=False),
    help="Where the metadata with the topic's configs are; the log directory unless told.",
)
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="A topic config that counts here.")
@click.option(
    "--high-watermark",
    type=click.IntRange(min=0),
    metavar="OFFSET",
    help="Up to here the log is committed; the log directory's checkpoint unless told.",
)
@click.option(
    "--memory-mib", type=click.IntRange(min=1), default=_MAP_MIB, show_default=True, help="For keys and offsets."
)
@json_option
def compact(
    folder: str,
    *,
    dry_run: bool,
    force: bool,
    metadata_folder: str | None,
    settings: tuple[str, ...],
    high_watermark: int | None,
    memory_mib: int,
    as_json: bool,
) -> None:
    """Keep the latest value of each key in a partition's FOLDER, as a node does with cleanup.policy=compact.

    The node must be stopped, in good order. All segments but the last are compacted, up to the high watermark and the
    first open transaction. When this is killed, or power is lost, start it again, or the node. Other replicas keep
    what they have: compact each, or let them do it.
    """
    files = DiskFiles()
    try:
        with closed_partition(files, folder) as partition:
            config = _config(files, partition, metadata_folder, settings, force=force)
            result = compact_folder(
                files,
                partition,
                config,
                high_watermark=high_watermark,
                clock_ms=clock.now_ms,
                map_bytes=memory_mib * 1024 * 1024,
                is_trial=dry_run,
            )
    except (OfflineError, CorruptData, ConfigError) as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        print_json({**to_builtins(result), "is_dry_run": dry_run})
    else:
        click.echo(_sentence(result, is_dry_run=dry_run))


def _config(
    files: DiskFiles,
    partition: ClosedPartition,
    metadata_folder: str | None,
    settings: tuple[str, ...],
    *,
    force: bool,
) -> LogConfig:
    folder = metadata_folder
    if folder is None and partition.directory is not None:
        folder = partition.directory.path
    stored = None if folder is None else topic_configs_in(read_image(files, folder), partition.topic)
    told = {}
    for setting in settings:
        key, separator, value = setting.partition("=")
        if not separator:
            raise click.UsageError(f"--set {setting}: expected KEY=VALUE.")
        told[key] = value
    config = log_config_of({**(stored or {}), **told})
    if not config.is_compacted and not force:
        if stored is None and "cleanup.policy" not in told:
            raise OfflineError(
                f"No metadata say how {partition.topic} is configured: name them with --metadata, give what counts "
                f"with --set, or compact it all the same with --force."
            )
        raise OfflineError(
            f"{partition.topic} has cleanup.policy={','.join(sorted(config.cleanup_policy))}, and would lose every "
            f"record but the latest of its key. --force does it all the same."
        )
    return config


def _sentence(result: FolderCompaction, *, is_dry_run: bool) -> str:
    before, after = result.before, result.after
    if result.passes == 0:
        return f"Nothing to compact below offset {result.end_offset}: {before.segments} segments, {before.bytes} bytes."
    verb = "Would compact" if is_dry_run else "Compacted"
    return (
        f"{verb} offsets {result.dirty_offset} to {result.end_offset - 1}: {result.read_records} records became "
        f"{result.kept_records}, of {result.keys} keys; {before.segments} segments became {after.segments}, "
        f"{before.bytes} bytes became {after.bytes}."
    )
