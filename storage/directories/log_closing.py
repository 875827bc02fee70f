"""What closing a log writes, and what the checkpoints are to say of one."""

from collections.abc import Mapping, Sequence

from ...protocol.ids import BrokerEpoch
from ..disk.rules.disk_errors import is_passing
from ..log.log import Log
from .group_sync import Failure, SyncGroup, sync_group
from .log_directory import LogDirectory
from .log_jobs import LogJobs
from .rules.checkpoints import HIGH_WATERMARKS, LOG_START_OFFSETS, RECOVERY_POINTS, TopicPartition


def recovery_point_to_checkpoint(directory: LogDirectory, log: Log) -> int:
    """What `recovery-point-offset-checkpoint` is to say of `log`."""
    if log.damage is None:
        return log.recovery_point
    # It must be found damaged again: what is lost was synced, not torn.
    return directory.checkpointed[RECOVERY_POINTS].get((log.topic, log.partition), log.recovery_point)


def start_offset_to_checkpoint(log: Log) -> int | None:
    """What `log-start-offset-checkpoint` is to say of `log`: nothing when it begins with its first segment.

    Nothing above what is synced (housekeeping soon does): a loss of power could end the log below, and it would begin
    anew there, without the producers of what is between. Nothing either before its folder is synced: a new log would
    not begin there. Of a log with a tier it says it always: what is before the first segment is up there.
    """
    offset = min(log.log_start_offset, log.recovery_point)
    is_told = log.config.remote_storage_enable or offset > log.first_segment_base_offset
    return offset if is_told and log.is_folder_synced else None


async def close_logs(jobs: LogJobs, logs: Sequence[Log]) -> None:
    """A log that has no room for what closing writes, or no readable index, does not keep the others from being synced;
    the OSError or CorruptData comes at the end then.
    """
    failures: list[Failure] = []

    async def close_some(some: Sequence[Log]) -> None:
        if _fatal(failures) is None:
            errors = await jobs.sync(await jobs.run(_files_to_close, some))
            failures.extend(error for error in errors if error is not None)
            await jobs.run(_close, some, errors)

    await jobs.for_slices(logs, close_some)
    if failures:
        raise _fatal(failures) or failures[0]


def _fatal(failures: Sequence[Failure]) -> OSError | None:
    return next((error for error in failures if isinstance(error, OSError) and not is_passing(error)), None)


def _files_to_close(logs: Sequence[Log]) -> list[SyncGroup]:
    return [sync_group(log, Log.files_to_close) for log in logs]


def _close(logs: Sequence[Log], errors: Sequence[Failure | None]) -> None:
    for log, error in zip(logs, errors, strict=True):
        if error is None:
            log.mark_flushed(log.log_end_offset)
        log.close_files()


def write_down_closed(
    directory: LogDirectory, logs: list[Log], broker_epoch: BrokerEpoch, high_watermarks: Mapping[TopicPartition, int]
) -> None:
    """Write the checkpoints, and the mark of a clean stop where all logs of the directory were closed. OSError."""
    keys = [(log.topic, log.partition) for log in logs]
    for name, offsets in (
        (RECOVERY_POINTS, [recovery_point_to_checkpoint(directory, log) for log in logs]),
        (LOG_START_OFFSETS, [start_offset_to_checkpoint(log) for log in logs]),
        (HIGH_WATERMARKS, [high_watermarks.get(key) for key in keys]),
    ):
        known = {key: offset for key, offset in zip(keys, offsets, strict=True) if offset is not None}
        directory.write_offsets(name, directory.offsets_of_unopened(name) | known)
    # What was not opened was not recovered either.
    if not directory.unopened and not any(log.damage is not None for log in logs):
        directory.write_clean_shutdown(broker_epoch)
