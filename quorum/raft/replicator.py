"""What a leader sends to whom: entries, heartbeats, or a snapshot where the log does not reach back far enough."""

from collections.abc import Sequence

from ...protocol.ids import NodeId
from .journal_items import LogEntry
from .log import RaftLog
from .messages import Append, AppendAck, EntryBody, RaftMessage, SnapshotAck
from .progress import PART_BYTES, Progress
from .snapshot_transfer import OutgoingSnapshot, SnapshotSend


class Replicator:
    """Of one voter; it has something to do while that leads."""

    def __init__(self, log: RaftLog, peer_ids: tuple[NodeId, ...]) -> None:
        self._log = log
        self._peer_ids = peer_ids
        self._linked: frozenset[NodeId] = frozenset()
        self._sends: dict[NodeId, SnapshotSend] = {}
        self._outgoing: OutgoingSnapshot | None = None
        self._due: set[NodeId] = set()
        self.progress: dict[NodeId, Progress] = {}
        """What is known of each peer in this leadership; empty when this voter does not lead."""
        self.wants_snapshot = False
        """A peer needs the newest snapshot: `offer_snapshot`."""

    @property
    def linked(self) -> frozenset[NodeId]:
        """Who can be reached."""
        return self._linked

    def begin(self) -> None:
        """Lead: the next entry is the first of the new term, and every peer may have all that is before it."""
        self.end()
        self.progress = {peer_id: Progress(self._log.end_offset) for peer_id in self._peer_ids}

    def end(self) -> None:
        """Lead no more."""
        self.progress = {}
        self._sends.clear()
        self._due.clear()
        self._outgoing = None
        self.wants_snapshot = False

    def set_link(self, peer_id: NodeId, *, is_up: bool) -> None:
        self._linked = self._linked | {peer_id} if is_up else self._linked - {peer_id}
        self._sends.pop(peer_id, None)
        if peer_id in self.progress:
            self.progress[peer_id].on_link()

    def offer_snapshot(self, snapshot: OutgoingSnapshot) -> None:
        self._outgoing = snapshot
        self.wants_snapshot = False

    def note_due(self, peer_id: NodeId) -> None:
        """Let a peer hear something with the next `serve`."""
        self._due.add(peer_id)

    def on_ack(self, peer_id: NodeId, message: AppendAck, now_ms: int) -> int:
        """Take in an acknowledgement of this term; return the offset that it can mean at most."""
        progress = self.progress[peer_id]
        progress.last_ack_ms = now_ms
        progress.is_member = message.is_member
        next_offset = min(message.next_offset, self._log.end_offset)
        if message.is_match:
            progress.on_match(next_offset)
            self._sends.pop(peer_id, None)
            if next_offset == self._log.end_offset:
                progress.last_caught_up_ms = now_ms
            elif progress.may_send_entries and progress.next_offset < self._log.end_offset:
                self._due.add(peer_id)
        else:
            progress.on_mismatch(next_offset)
            # Each heartbeat to one that is waiting for a snapshot is answered so; that answer needs no answer.
            if self._log.epoch_at(next_offset - 1) is not None:
                self._due.add(peer_id)
        return next_offset

    def on_snapshot_ack(self, peer_id: NodeId, message: SnapshotAck, now_ms: int) -> None:
        send = self._sends.get(peer_id)
        if send is not None:
            send.on_ack(message, now_ms)
            self._due.add(peer_id)

    def serve(self, *, term: int, commit_end: int, now_ms: int) -> list[tuple[NodeId, RaftMessage]]:
        """Return what the peers that are due and linked get now."""
        due, self._due = self._due, set()
        messages: list[tuple[NodeId, RaftMessage]] = []
        for peer_id in sorted(due & self._linked):
            messages += [(peer_id, message) for message in self._serve(peer_id, term, commit_end, now_ms)]
        return messages

    def _serve(self, peer_id: NodeId, term: int, commit_end: int, now_ms: int) -> list[RaftMessage]:
        progress = self.progress[peer_id]
        messages: list[RaftMessage] = []
        while True:
            previous_epoch = self._log.epoch_at(progress.next_offset - 1)
            if previous_epoch is None:
                return self._serve_snapshot(peer_id, term, now_ms)
            entries: Sequence[LogEntry] = ()
            if progress.next_offset < self._log.end_offset and progress.may_send_entries:
                entries = self._log.entries(progress.next_offset, self._log.end_offset, max_bytes=PART_BYTES)
            elif messages:
                return messages
            bodies = tuple(EntryBody(entry.epoch, entry.command) for entry in entries)
            messages.append(Append(term, progress.next_offset - 1, previous_epoch, commit_end, bodies))
            if not entries:
                return messages
            progress.on_sent(entries[-1].offset + 1)

    def _serve_snapshot(self, peer_id: NodeId, term: int, now_ms: int) -> list[RaftMessage]:
        # The receiver's log is too short for this heartbeat, and it says so: that keeps the two in touch.
        heartbeat = Append(term, self._log.start_offset - 1, self._log.previous_epoch, 0, ())
        send = self._sends.get(peer_id)
        if send is None:
            if self._outgoing is None or self._outgoing.end_offset < self._log.start_offset:
                self.wants_snapshot = True
                return [heartbeat]
            send = self._sends[peer_id] = SnapshotSend(self._outgoing)
        return [heartbeat, *send.parts(term, now_ms)]
