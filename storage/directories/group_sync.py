"""Syncs of many logs together: a folder that several of them have in common is synced once."""

import logging
from collections.abc import Callable, Iterable, Sequence
from errno import EIO, ENOMEM
from typing import TypeAlias

from ...protocol.errors import CorruptData
from ..disk.rules.disk_errors import SyncError
from ..log.log import Log
from ..log.recovery_point import FolderSync, Syncable

logger = logging.getLogger(__name__)

Failure: TypeAlias = OSError | CorruptData
SyncGroup: TypeAlias = tuple[Sequence[Syncable], Failure | None]
"""What is to be synced for one log, in this order, or why that cannot be done."""


def sync_group(log: Log, files_of: Callable[[Log], Sequence[Syncable]]) -> SyncGroup:
    """`files_of(log)`, an error of which is this log's alone."""
    try:
        return files_of(log), None
    except (OSError, CorruptData) as error:
        return (), error
    except Exception as error:
        logger.exception("Failed to flush log: partition=%s", log.name)
        return (), _unexpected(error)


def sync_groups(groups: Iterable[SyncGroup]) -> list[Failure | None]:
    """Sync all groups, waiting; of each the error, if there was one. After the first the rest of its group is left."""
    errors: list[Failure | None] = []
    # Which groups end with it. What is in it is synced before: that of the others as well, then.
    folders: dict[FolderSync, list[int]] = {}
    for number, (files, refusal) in enumerate(groups):
        errors.append(refusal)
        for file in files:
            if isinstance(file, FolderSync):
                folders.setdefault(file, []).append(number)
            elif errors[number] is None:
                errors[number] = _sync(file)
    for folder, numbers in folders.items():
        waiting = [number for number in numbers if errors[number] is None]
        if waiting:
            error = _sync(folder)
            for number in waiting:
                errors[number] = error
    return errors


def _sync(file: Syncable) -> OSError | None:
    try:
        file.sync()
    except OSError as error:
        return error
    except Exception as error:
        logger.exception("Flush failed")
        return _unexpected(error)
    return None


def _unexpected(error: Exception) -> OSError:
    """Where memory was short nothing was begun; after anything else what is synced is unknown."""
    if isinstance(error, MemoryError):
        return OSError(ENOMEM, "out of memory")
    return SyncError(EIO, f"unexpected error: {error!r}")
