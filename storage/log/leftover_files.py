"""What a stop in the middle of deleting, compacting or splitting segments left in a log's folder."""

from ..disk.files import Files
from .rules.file_names import (
    CLEANED,
    DELETED,
    INDEX_SUFFIXES,
    LOG,
    PRODUCER_SNAPSHOT,
    SWAP,
    base_offset_of,
    offsets_with,
    segment_file,
)
from .segment_scan import scan


def tidy(files: Files, directory: str) -> list[str]:
    """Finish or undo it, remove indexes without a log, and return the names that are left.

    `….swap` files are complete replacements: the segments whose offsets they cover go, and they take their place. Only
    when there are `….cleaned` files too was a split under way; then swaps from the first of these on are not complete.
    """
    names = files.list_directory(directory)
    for name in names:
        if name.endswith(DELETED):
            files.remove(f"{directory}/{name}")
    cleaned = [name for name in names if name.endswith(CLEANED)]
    incomplete_from = min((offset for name in cleaned if (offset := base_offset_of(name)) is not None), default=None)
    swaps = []
    for name in names:
        if name.endswith(SWAP):
            offset = base_offset_of(name)
            if offset is None or (incomplete_from is not None and offset >= incomplete_from):
                files.remove(f"{directory}/{name}")
            else:
                swaps.append(name)
    for name in cleaned:
        files.remove(f"{directory}/{name}")
    if swaps:
        _swap_in(files, directory, names, swaps)
    if swaps or cleaned or any(name.endswith((DELETED, SWAP)) for name in names):
        names = files.list_directory(directory)
    bases = set(offsets_with(names, LOG))
    for suffix in INDEX_SUFFIXES:
        for offset in offsets_with(names, suffix):
            if offset not in bases:
                files.remove(segment_file(directory, offset, suffix))
                names.remove(f"{offset:020d}{suffix}")
    return names


def _swap_in(files: Files, directory: str, names: list[str], swaps: list[str]) -> None:
    replaced: list[tuple[int, int]] = []
    for name in swaps:
        if name.endswith(LOG + SWAP):
            file = files.open(f"{directory}/{name}")
            base_offset = end_offset = int(name.partition(".")[0])
            for batch in scan(file, 0, file.size):
                end_offset = batch.header.next_offset
            file.close()
            replaced.append((base_offset, end_offset))
    if replaced:
        first = min(base_offset for base_offset, _ in replaced)
        end = max(end_offset for _, end_offset in replaced)
        for name in names:
            offset = base_offset_of(name)
            if offset is None or not first <= offset < end or name.endswith((SWAP, CLEANED, DELETED)):
                continue
            # What was known of producers before the first of them holds for what takes its place.
            if offset > first or not name.endswith(PRODUCER_SNAPSHOT):
                files.remove(f"{directory}/{name}")
    for name in swaps:
        files.rename(f"{directory}/{name}", f"{directory}/{name.removesuffix(SWAP)}")
