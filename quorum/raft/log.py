"""The log in memory, and what of it is not on the disk yet.

It begins at `start_offset`, behind a snapshot or at 0, and ends at `end_offset`. Every change leaves the
journal items that make it durable; the voter writes them before any message that depends on the change leaves.

Raft truncates on conflict only (§5.3). A caller that cuts the log first and appends then, without having looked, may do
so between two calls of `settle`: what it appended again was never gone, and what it did not touch comes back.
"""

from collections.abc import Iterable, Sequence

from .journal_items import CommitMark, JournalItem, LogEnd, LogEntry, Membership, Term


class RaftLog:
    """One voter's log, term and vote."""

    def __init__(
        self, *, start_offset: int, previous_epoch: int, entries: Iterable[LogEntry], term: Term, is_member: bool
    ) -> None:
        self.start_offset = start_offset
        self.previous_epoch = previous_epoch
        self.term = term
        self.is_member = is_member
        self._entries = list(entries)
        self._cut: list[LogEntry] = []
        self._items: list[JournalItem] = []
        self._commit_end = 0
        self._written_commit_end = 0

    @property
    def end_offset(self) -> int:
        return self.start_offset + len(self._entries)

    @property
    def last_epoch(self) -> int:
        return self._entries[-1].epoch if self._entries else self.previous_epoch

    def epoch_at(self, offset: int) -> int | None:
        """Return the epoch of the entry at the offset, also of the one before the start; None where it is unknown."""
        index = offset - self.start_offset
        if index == -1:
            return self.previous_epoch
        return self._entries[index].epoch if 0 <= index < len(self._entries) else None

    def entry(self, offset: int) -> LogEntry:
        """Return an entry that the log has."""
        assert self.start_offset <= offset < self.end_offset, f"{offset} is not in the log"
        return self._entries[offset - self.start_offset]

    def entries(self, start_offset: int, end_offset: int, *, max_bytes: int) -> Sequence[LogEntry]:
        """Return entries the log has from `start_offset` on: at least one, then up to `max_bytes` of commands."""
        start = start_offset - self.start_offset
        stop = min(end_offset - self.start_offset, len(self._entries))
        assert start >= 0
        size_bytes = 0
        for index in range(start, stop):
            size_bytes += len(self._entries[index].command) + _ENTRY_OVERHEAD_BYTES
            if size_bytes > max_bytes and index > start:
                return self._entries[start:index]
        return self._entries[start:stop]

    def epoch_start(self, offset: int) -> int:
        """Return the offset of the first entry of the epoch that the entry at `offset` has."""
        epoch = self.epoch_at(offset)
        while offset > self.start_offset and self.epoch_at(offset - 1) == epoch:
            offset -= 1
        return offset

    # Changes.

    def append(self, entry: LogEntry) -> None:
        assert entry.offset == self.end_offset, f"offset {entry.offset} after {self.end_offset}"
        if self._cut:
            if self._cut[0].epoch == entry.epoch:
                # One leader, one offset: the same entry (log matching).
                self._entries.append(self._cut.pop(0))
                return
            assert entry.offset >= self._commit_end, f"the committed entry at offset {entry.offset} was to be replaced"
            self._items.append(LogEnd(entry.offset, self.last_epoch))
            self._cut.clear()
        self._entries.append(entry)
        self._items.append(entry)

    def cut(self, offset: int) -> None:
        """Put the entries from the offset on aside, until `settle`."""
        assert not self._cut
        index = offset - self.start_offset
        self._cut = self._entries[index:]
        del self._entries[index:]

    def settle(self) -> None:
        """Bring back what was cut and did not conflict with anything."""
        if self._cut:
            self._entries += self._cut
            self._cut.clear()

    def restart(self, end_offset: int, epoch: int) -> None:
        """Begin anew behind a snapshot of everything below `end_offset`, keeping what follows the same entry."""
        assert not self._cut
        if self.epoch_at(end_offset - 1) == epoch:
            return
        self._entries.clear()
        self.start_offset, self.previous_epoch = end_offset, epoch
        self._items.append(LogEnd(end_offset, epoch))
        self.note_commit(end_offset)

    def trim_to(self, offset: int) -> None:
        """Forget the entries below the offset, for which nothing need be written."""
        if offset > self.start_offset:
            epoch = self.epoch_at(offset - 1)
            assert epoch is not None, "only what the log has can be trimmed"
            del self._entries[: offset - self.start_offset]
            self.start_offset, self.previous_epoch = offset, epoch

    def note_commit(self, end_offset: int) -> None:
        """Remember that everything below is committed; that is written with the next items."""
        self._commit_end = max(self._commit_end, end_offset)

    def set_term(self, term: Term) -> None:
        """Take a term, or a vote in it."""
        assert term.term >= self.term.term, "the term went backwards"
        assert term.term > self.term.term or self.term.voted_for in (None, term.voted_for), "a second vote in one term"
        if term != self.term:
            self.term = term
            self._items.append(term)

    def set_member(self) -> None:
        self.is_member = True
        self._items.append(Membership(True))

    def take_items(self) -> list[JournalItem]:
        """Return what must be on the disk before anything of it may be seen outside."""
        assert not self._cut, "nothing is taken in the middle of a change"
        items, self._items = self._items, []
        if items and self._commit_end > self._written_commit_end:
            self._written_commit_end = self._commit_end
            items.append(CommitMark(self._commit_end))
        return items


# What an entry takes beside its command: in memory, on the wire and on the disk.
_ENTRY_OVERHEAD_BYTES = 24
