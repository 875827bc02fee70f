"""PySyncObj 0.3.17 reduced to its decisions: elections, log matching, the commit rule. The only module that imports it.

What is used of it, and how (line numbers are of its `syncobj.py`):

- It is ticked by us, on our clock, without thread, socket, poller event or file. Module globals replaced for that:
  `monotonicTime`, `random`, `PIPE_NOTIFIER_ENABLED`, `createJournal`, `Serializer`. No mangled name is used.
- Pickle would be met on its wire, in its dumps and in some commands. None of them is used, and its pickle functions
  raise.
- It never sees a command. Its log holds `(_MARK, index, term)`; a command type that it does not know is replicated and
  left alone (876-892). Its index of an entry is the offset + 2: index 1 stands for "before the first entry".
- It campaigns only while it is connected to anyone and its own deadline has passed (635, 1339). Its deadlines are
  always past, and it sees links only while it campaigns or leads: so `campaign` decides when.
- It cuts the log after the entry before every append (991-1004): `RaftLog.cut` and `settle` make that lazy.
- Its acknowledgements and votes carry no term or name (1063-1083): the caller filters them by term and voter.
- It moves its commit index on a snapshot message without having matched the log (1029): a notice of one says commit
  index 0, an installation says the snapshot's own end.
- It thinks it applies entries; it is handed none with a meaning, and its callbacks are not used.

Its version and the names that are replaced are looked at before use, and anything else is refused.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple, NoReturn, Protocol, TypeAlias

import pysyncobj.pickle as library_pickle
import pysyncobj.version
from pysyncobj import syncobj as library
from pysyncobj.journal import Journal as LibraryJournal
from pysyncobj.node import Node
from pysyncobj.transport import Transport

from ...protocol.ids import NodeId
from .consensus import ConsensusFailed
from .journal_items import LogEntry, Term
from .log import RaftLog

VERSION: Final = "0.3.17"
_REPLACED: Final = ("monotonicTime", "random", "PIPE_NOTIFIER_ENABLED", "createJournal", "Serializer")
_PICKLE_FUNCTIONS: Final = ("load", "loads", "dump", "dumps")
_USED: Final = (
    "_applyCommand",
    "_checkCommandsToApply",
    "_isLeader",
    "_getLeader",
    "doTick",
    "transferLeadership",
    "raftCurrentTerm",
    "raftCommitIndex",
)

_MARK: Final = b"\x10"
_INDEX_OF_OFFSET_0: Final = 2

# Thresholds that make it leave the log alone (`logCompaction...`).
_NEVER: Final = 1 << 62
_LEADER: Final = 2


class SendIntent(NamedTuple):
    """It is time to send the receiver something: new entries, a commit, or a heartbeat."""


class AckIntent(NamedTuple):
    """The answer to an append."""

    next_offset: int
    is_match: bool


class VoteRequestIntent(NamedTuple):
    """To everyone, on behalf of a new candidate."""

    last_offset: int
    last_epoch: int


class VoteIntent(NamedTuple):
    """A vote for the receiver in the current term; it is in the log's items to be written."""


class TimeoutNowIntent(NamedTuple):
    """Leadership is handed to the receiver."""


Intent: TypeAlias = SendIntent | AckIntent | VoteRequestIntent | VoteIntent | TimeoutNowIntent


class RaftRulesListener(Protocol):
    """Who acts on what was decided. Called in the middle of a call of `RaftRules`: it must not call back in."""

    def on_intent(self, peer_id: NodeId, intent: Intent) -> None: ...

    def on_role_change(self, *, is_leader: bool) -> None:
        """Learn that this voter leads from now on, or does not any more."""


class RaftRules:
    """Raft's rules for one voter and its `RaftLog`, which it alone changes while it lives."""

    def __init__(
        self,
        log: RaftLog,
        *,
        node_id: NodeId,
        voter_ids: tuple[NodeId, ...],
        commit_end: int,
        listener: RaftRulesListener,
        now_ms: Callable[[], int],
        heartbeat_ms: int,
        check_quorum_ms: int,
    ) -> None:
        """`commit_end`: what is known to be committed. Raises ConsensusFailed when the library is another one."""
        install_hooks()
        self._log = log
        self._listener = listener
        # The library counts in seconds.
        self._clock = lambda: now_ms() / 1000
        self._nodes = {voter_id: Node(voter_id) for voter_id in voter_ids if voter_id != node_id}
        self._journal = _JournalAdapter(log, commit_end)
        self._transport = _TransportAdapter(self._on_send)
        self._linked: frozenset[NodeId] = frozenset()
        configuration = library.SyncObjConf(
            autoTick=False,
            journalFile=self._journal,
            # It asks whether there is a dump by looking for a file, and gets the one it is itself: with a log that
            # begins behind a snapshot it must call our serializer, which says how far that snapshot reaches.
            fullDumpFile=library.__file__ if log.start_offset else None,
            appendEntriesUseBatch=False,
            commandsWaitLeader=False,
            dynamicMembershipChange=False,
            onStateChanged=self._on_state_changed,
            appendEntriesPeriod=heartbeat_ms / 1000,
            raftMinTimeout=heartbeat_ms * 4 / 1000,
            raftMaxTimeout=heartbeat_ms * 5 / 1000,
            connectionTimeout=heartbeat_ms * 5 / 1000,
            # checkQuorum: the leader steps down when no majority answered for this long.
            leaderFallbackTimeout=check_quorum_ms / 1000,
            appendEntriesBatchSizeBytes=1 << 30,
            logCompactionMinEntries=_NEVER,
            logCompactionMinTime=_NEVER,
        )
        # It makes its deadline of the first election from the clock of this moment, which is therefore long ago.
        _hooks.clock = lambda: -1e9
        _hooks.serializer = _SerializerAdapter(self._journal)
        self._library: Any = library.SyncObj(
            Node(node_id), list(self._nodes.values()), configuration, transport=self._transport
        )
        # Read at each election from here on: a deadline is past when it is made.
        configuration.raftMinTimeout = configuration.raftMaxTimeout = -1.0
        if voter_ids != (node_id,):
            self.tick()

    @property
    def term(self) -> int:
        return int(self._library.raftCurrentTerm)

    @property
    def is_leader(self) -> bool:
        return bool(self._library._isLeader())

    @property
    def leader_id(self) -> NodeId | None:
        leader = self._library._getLeader()
        return None if leader is None else NodeId(leader.id)

    @property
    def commit_end(self) -> int:
        """End of what is committed, exclusive, as far as this voter knows."""
        return int(self._library.raftCommitIndex) - _INDEX_OF_OFFSET_0 + 1

    def tick(self) -> None:
        """Let time-outs pass, heartbeats go out and acknowledgements count."""
        self._enter()
        self._library.doTick(0)

    def set_links(self, peer_ids: frozenset[NodeId]) -> None:
        """Set the reachable peers. While this voter does not lead, the library sees none."""
        self._linked = peer_ids
        self._show_links(is_open=self.is_leader)

    def campaign(self) -> None:
        """Begin an election in the next term, at once."""
        self._enter()
        self._show_links(is_open=True, everyone=True)
        self._library.doTick(0)
        self._show_links(is_open=self.is_leader)

    def propose(self, commands: list[bytes]) -> list[LogEntry]:
        """Append the commands to the leader's log; appends to the peers follow."""
        assert self.is_leader
        assert commands
        self._enter()
        entries = []
        for command in commands[:-1]:
            entries.append(LogEntry(self._log.end_offset, self.term, command))
            self._log.append(entries[-1])
        # One send for the group: the library sends after each command of its own.
        self._journal.staged = commands[-1]
        self._library._applyCommand(_MARK, None)
        self._library._checkCommandsToApply()
        entries.append(self._log.entry(self._log.end_offset - 1))
        return entries

    def transfer_leadership(self, peer_id: NodeId) -> None:
        """Ask a peer that has everything to take over; else nothing happens."""
        self._enter()
        self._library.transferLeadership(self._nodes[peer_id])

    # What came from peers, checked and filtered by the caller.

    def on_append(
        self, peer_id: NodeId, *, term: int, previous_offset: int, previous_epoch: int, commit_end: int,
        entries: list[LogEntry],
    ) -> None:  # fmt: skip
        """Take in a leader's entries, in no term below ours and behind nothing that is committed here and differs."""
        self._journal.arrived = {entry.offset: entry.command for entry in entries}
        try:
            self._receive(
                peer_id,
                type="append_entries",
                term=term,
                commit_index=commit_end - 1 + _INDEX_OF_OFFSET_0,
                entries=[(_MARK, entry.offset + _INDEX_OF_OFFSET_0, entry.epoch) for entry in entries],
                prevLogIdx=previous_offset + _INDEX_OF_OFFSET_0,
                prevLogTerm=previous_epoch,
            )
        finally:
            self._journal.arrived = {}
            self._log.settle()

    def on_snapshot_notice(self, peer_id: NodeId, *, term: int) -> None:
        """Hear that the leader is sending a snapshot: it leads, and that is all."""
        self._receive(peer_id, type="append_entries", term=term, commit_index=0, serialized=None)

    def on_snapshot_installed(self, peer_id: NodeId, *, term: int, end_offset: int, epoch: int) -> None:
        """Begin the log anew behind a snapshot that is whole, is later than what is committed, and is this peer's."""
        self._journal.snapshot = (end_offset, epoch)
        last_index = end_offset - 1 + _INDEX_OF_OFFSET_0
        self._receive(peer_id, type="append_entries", term=term, commit_index=last_index, serialized=_INSTALL)
        self._journal.snapshot = None

    def on_ack(self, peer_id: NodeId, *, next_offset: int, is_match: bool) -> None:
        """Count an acknowledgement of this term; with `is_match` its sender has our log below `next_offset`.

        Where to send from is not the library's affair, so it is never told to go back.
        """
        self._receive(
            peer_id,
            type="next_node_idx",
            next_node_idx=next_offset + _INDEX_OF_OFFSET_0,
            reset=False,
            success=is_match,
        )

    def on_vote_request(self, peer_id: NodeId, *, term: int, last_offset: int, last_epoch: int) -> None:
        self._receive(
            peer_id,
            type="request_vote",
            term=term,
            last_log_index=last_offset + _INDEX_OF_OFFSET_0,
            last_log_term=last_epoch,
        )

    def on_vote(self, peer_id: NodeId) -> None:
        """Count a vote of this term; the caller lets each voter's through once."""
        self._receive(peer_id, type="response_vote", term=self.term)

    def on_higher_term(self, peer_id: NodeId, term: int) -> None:
        """Take the term, and lead no more: a vote request that can never be granted says just that."""
        self._receive(peer_id, type="request_vote", term=term, last_log_index=0, last_log_term=-1)

    def _receive(self, peer_id: NodeId, **message: Any) -> None:
        self._enter()
        self._transport._onMessageReceived(self._nodes[peer_id], message)

    def _enter(self) -> None:
        # Several voters may live in one process, each on its own clock.
        _hooks.clock = self._clock

    def _on_send(self, node: Node, message: dict[str, Any]) -> None:
        intent: Intent
        match message["type"]:
            case "append_entries":
                intent = SendIntent()
            case "next_node_idx":
                intent = AckIntent(message["next_node_idx"] - _INDEX_OF_OFFSET_0, message["success"])
            case "request_vote":
                intent = VoteRequestIntent(message["last_log_index"] - _INDEX_OF_OFFSET_0, message["last_log_term"])
            case "response_vote":
                intent = VoteIntent()
            case "timeout_now":
                intent = TimeoutNowIntent()
            case unexpected:
                raise AssertionError(f"the library sends {unexpected}, which it is given no reason to")
        self._listener.on_intent(NodeId(node.id), intent)

    def _on_state_changed(self, old_state: int, state: int) -> None:
        self._show_links(is_open=state == _LEADER)
        if _LEADER in (old_state, state):
            self._listener.on_role_change(is_leader=state == _LEADER)

    def _show_links(self, *, is_open: bool, everyone: bool = False) -> None:
        for peer_id, node in self._nodes.items():
            if is_open and (everyone or peer_id in self._linked):
                self._transport._onNodeConnected(node)
            else:
                self._transport._onNodeDisconnected(node)


class _JournalAdapter(LibraryJournal):  # type: ignore[misc]  # the library has no types
    """`RaftLog` as the library's journal: a list of `(command, index, term)`.

    In front of the entries stands one that means "before the first", or, behind a snapshot, two that stand for its last
    two entries, because the library compares two with its dump. The epoch of the first of them is not known.
    """

    def __init__(self, log: RaftLog, commit_end: int) -> None:
        self._log = log
        self._commit_index = commit_end - 1 + _INDEX_OF_OFFSET_0
        self.staged = b""
        self.arrived: dict[int, bytes] = {}
        self.snapshot: tuple[int, int] | None = None

    @property
    def first_known_index(self) -> int:
        """The lowest index whose term is known."""
        return self._log.start_offset - 1 + _INDEX_OF_OFFSET_0

    def head(self) -> list[tuple[bytes, int, int]]:
        last = (_MARK, self.first_known_index, self._log.previous_epoch)
        if not self._log.start_offset:
            return [last]
        return [(_MARK, self.first_known_index - 1, self._log.previous_epoch), last]

    def add(self, _: bytes, index: int, term: int) -> None:
        if self.snapshot is not None:
            # The two entries that stand for it: `head` has them.
            return
        offset = index - _INDEX_OF_OFFSET_0
        command = self.arrived[offset] if self.arrived else self.staged
        self.staged = b""
        self._log.append(LogEntry(offset, term, command))

    def clear(self) -> None:
        """Only an installed snapshot clears the log."""
        assert self.snapshot is not None
        self._log.restart(*self.snapshot)

    def deleteEntriesFrom(self, position: int) -> None:  # noqa: N802 - the library's name
        self._log.cut(self._log.start_offset + position - len(self.head()))

    def deleteEntriesTo(self, _: int) -> NoReturn:  # noqa: N802 - the library's name
        raise AssertionError("it was told never to compact")

    def __getitem__(self, item: int | slice) -> Any:
        # A dozen of these are on the way of each commit, so they make no lists that are not asked for.
        log = self._log
        # The offset that stands at place 0, were it in the log.
        first = log.start_offset - self._head_count
        if isinstance(item, slice):
            start, stop, _ = item.indices(len(self))
            marks = [self._mark(first + place) for place in range(max(start, self._head_count), stop)]
            return self.head()[start:stop] + marks if start < self._head_count else marks
        place = item if item >= 0 else len(self) + item
        return self.head()[place] if place < self._head_count else self._mark(first + place)

    def __len__(self) -> int:
        return self._head_count + self._log.end_offset - self._log.start_offset

    @property
    def _head_count(self) -> int:
        return 2 if self._log.start_offset else 1

    def _mark(self, offset: int) -> tuple[bytes, int, int]:
        epoch = self._log.epoch_at(offset)
        assert epoch is not None
        return _MARK, offset + _INDEX_OF_OFFSET_0, epoch

    def setCurrentTerm(self, term: int, voted_for: NodeId | None) -> None:  # noqa: N802 - the library's name
        self._log.set_term(Term(term, voted_for))

    def getCurrentTerm(self) -> int:  # noqa: N802 - the library's name
        return self._log.term.term

    def getVotedForNodeId(self) -> int | None:  # noqa: N802 - the library's name
        return self._log.term.voted_for

    def setRaftCommitIndex(self, index: int) -> None:  # noqa: N802 - the library's name
        self._log.note_commit(index - _INDEX_OF_OFFSET_0 + 1)

    def getRaftCommitIndex(self) -> int:  # noqa: N802 - the library's name
        return self._commit_index

    def _destroy(self) -> None: ...


class _TransportAdapter(Transport):  # type: ignore[misc]  # the library has no types
    """What the library would send goes to `on_send`."""

    def __init__(self, on_send: Callable[[Node, dict[str, Any]], None]) -> None:
        super().__init__(None, None, None)
        self._on_send = on_send

    def send(self, node: Node, message: dict[str, Any]) -> bool:
        self._on_send(node, message)
        return True


_INSTALL: Final = object()


class _SerializerAdapter:
    """In the place of the library's serializer: it writes nothing, sends nothing, and reads what the log knows."""

    def __init__(self, journal: _JournalAdapter) -> None:
        self._journal = journal

    def checkSerializing(self) -> tuple[int, None]:  # noqa: N802 - the library's name
        """Always busy, so that the library never compacts."""
        return library.SERIALIZER_STATE.SERIALIZING, None

    def getTransmissionData(self, _: Node) -> tuple[bytes, bool, bool]:  # noqa: N802 - the library's name
        """Have it all sent, so that it goes on behind the snapshot; `snapshot_transfer.py` does the sending."""
        return b"", True, True

    def setTransmissionData(self, data: object) -> bool:  # noqa: N802 - the library's name
        """Say whether the snapshot is complete."""
        return data is _INSTALL

    def deserialize(self) -> tuple[object, ...]:
        """Return (state, last entry, the entry before it, cluster)."""
        snapshot = self._journal.snapshot
        if snapshot is None:
            before, last = self._journal.head()
        else:
            end_offset, epoch = snapshot
            last = (_MARK, end_offset - 1 + _INDEX_OF_OFFSET_0, epoch)
            before = (_MARK, last[1] - 1, epoch)
        return None, last, before, frozenset()

    def cancelTransmisstion(self, _: Node) -> None: ...  # noqa: N802 - the library's name


class _Hooks:
    """What the library's module globals lead to. One thread runs all voters of a process."""

    def __init__(self) -> None:
        self.clock: Callable[[], float] = lambda: 0.0
        self.serializer: _SerializerAdapter | None = None


class _NoRandom:
    """Deadlines are the caller's: the library's own are all equal."""

    @staticmethod
    def random() -> float:
        return 0.0


_hooks: Final = _Hooks()


def install_hooks() -> None:
    """Take the library's clock, chance, disk and pickle away from it. Raises ConsensusFailed when it is another one."""
    found = pysyncobj.version.VERSION
    if found != VERSION:
        raise ConsensusFailed(
            f"This version of penstock runs its quorum on PySyncObj {VERSION} only, and {found} is installed."
        )
    missing = [name for name in _REPLACED if not hasattr(library, name)]
    missing += [name for name in _USED if not hasattr(library.SyncObj, name)]
    missing += [f"pickle.{name}" for name in _PICKLE_FUNCTIONS if not hasattr(library_pickle, name)]
    if missing:
        raise ConsensusFailed(f"PySyncObj {VERSION} as installed lacks {', '.join(missing)}: it has been changed.")
    library.monotonicTime = lambda: _hooks.clock()
    library.random = _NoRandom
    library.PIPE_NOTIFIER_ENABLED = False
    library.createJournal = lambda journal: journal
    library.Serializer = lambda *_: _hooks.serializer
    for name in _PICKLE_FUNCTIONS:
        setattr(library_pickle, name, partial(_refuse_pickle, name))


def _refuse_pickle(name: str, *_: object, **__: object) -> NoReturn:
    raise ConsensusFailed(f"The quorum's library called pickle.{name}, which nothing here may do.")
