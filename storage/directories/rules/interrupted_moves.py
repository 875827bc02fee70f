"""What becomes of moves between log directories that a process did not finish (KIP-113): decided from names of folders.

A move copies a log into `….id-future` in another directory. To take over, that folder gets the plain name, and then the
copied one becomes `….id-delete`, with the same id. Before that the copy has a note, `replaced-directory`, of where the
log was that it replaces: it stays until both names are synced. A loss of power may undo either name, or both:

    the log     the copy     what the node goes on with
    there       future       the log: nothing that was synced since is anywhere else; the move goes on
    there       there        the copy, by its note; the log goes
    deleted     future       the copy, by the common id: it gets its name
    deleted     there        the copy
    nowhere     future       neither: the copy may lack records that were acknowledged. The replica is offline until
                             another one leads without it, or a person decides
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TypeAlias
from uuid import UUID

from msgspec import Struct

from ....protocol.errors import ConfigError
from ....protocol.ids import TopicId
from .checkpoints import TopicPartition
from .folder_names import folder_name


class FoundFolder(Struct, frozen=True, kw_only=True):
    """A folder of a partition, of whatever kind."""

    path: str
    key: TopicPartition
    directory_id: UUID
    unique_id: str = ""
    """In the name of a folder that is no log."""
    replaced_directory_id: UUID | None = None
    """What the note in it says."""
    topic_id: TopicId | None = None
    has_records: bool = True


class Promote(Struct, frozen=True, kw_only=True):
    """The copy is the log: give it its name."""

    folder: FoundFolder


class Resume(Struct, frozen=True, kw_only=True):
    """Go on copying."""

    folder: FoundFolder


class Discard(Struct, frozen=True, kw_only=True):
    """It is of no use any more: `….-delete`."""

    folder: FoundFolder


class SetAside(Struct, frozen=True, kw_only=True):
    """An old log of a partition that is elsewhere by now: `….-stray`."""

    folder: FoundFolder


class Incomplete(Struct, frozen=True, kw_only=True):
    """A copy without the log that it is of."""

    folder: FoundFolder


Decision: TypeAlias = Promote | Resume | Discard | SetAside | Incomplete


def settle(
    logs: Iterable[FoundFolder],
    futures: Iterable[FoundFolder],
    deleted: Iterable[FoundFolder],
    *,
    assigned_directory: Callable[[TopicPartition], UUID | None],
    has_offline_directory: bool,
) -> list[Decision]:
    """What to do about the folders that were found in all directories.

    `assigned_directory` is where the metadata say that the replica of this node is. In a directory that is offline the
    log of a copy may lie: then the copy is left as it is. ConfigError when a partition has two logs, and nothing tells
    which one is right.
    """
    decisions: list[Decision] = []
    logs_of: dict[TopicPartition, list[FoundFolder]] = defaultdict(list)
    for log in logs:
        logs_of[log.key].append(log)
    for key, some in logs_of.items():
        if len(some) > 1:
            decisions += _one_of(key, some, assigned_directory(key))
    copied = {(folder.key, folder.unique_id) for folder in deleted}
    futures_of: dict[TopicPartition, list[FoundFolder]] = defaultdict(list)
    for future in futures:
        futures_of[future.key].append(future)
    for key, found in futures_of.items():
        taken_over = [future for future in found if (key, future.unique_id) in copied]
        if key in logs_of:
            present = {log.directory_id for log in logs_of[key]}
            if len(found) == 1 and found[0].directory_id not in present:
                decisions.append(Resume(folder=found[0]))
            else:
                decisions += [Discard(folder=future) for future in found]
        elif len(taken_over) == 1:
            decisions.append(Promote(folder=taken_over[0]))
            decisions += [Discard(folder=future) for future in found if future is not taken_over[0]]
        elif not has_offline_directory:
            # The longest-lived of several is not known: the first stands for the replica that is not there.
            kept = [future for future in found if future.has_records]
            decisions += [Discard(folder=future) for future in found if future not in kept[:1]]
            decisions += [Incomplete(folder=future) for future in kept[:1]]
    return decisions


def _one_of(key: TopicPartition, logs: list[FoundFolder], assigned: UUID | None) -> list[Decision]:
    present = {log.directory_id for log in logs}
    for log in logs:
        if log.replaced_directory_id in present - {log.directory_id} and len(logs) == 2:
            return [Discard(folder=other) for other in logs if other is not log]
    if assigned in present:
        # As when a disk comes back after its replicas were made anew elsewhere.
        return [SetAside(folder=other) for other in logs if other.directory_id != assigned]
    raise ConfigError(
        f"Partition {folder_name(*key)} has two logs, {logs[0].path} and {logs[1].path}: remove the one that is wrong."
    )
