"""Voters without disks and network around one table: a test sees and moves every message."""

from collections.abc import Callable, Sequence
from random import Random

from typed_ids import node_ids

from penstock.protocol.ids import NodeId
from penstock.quorum.raft.core import RaftCore
from penstock.quorum.raft.elections import RaftTiming
from penstock.quorum.raft.inbox import Heard
from penstock.quorum.raft.journal_items import LogEntry, Term
from penstock.quorum.raft.log import RaftLog
from penstock.quorum.raft.messages import RaftMessage
from penstock.quorum.raft.step import Step

TIMING = RaftTiming()
_STEP_MS = 10


class Table:
    """Cores that hear each other at once, but for the pairs in `cut` and what `is_lost` says. What they would write is
    taken for written."""

    def __init__(self, count: int = 3, *, seed: int = 1) -> None:
        self.now_ms = 1_000
        self.ids = tuple(range(1, count + 1))
        self.cut: set[tuple[int, int]] = set()
        self.is_lost: Callable[[int, int, RaftMessage], bool] = lambda *_: False
        self.sent: list[tuple[int, int, RaftMessage]] = []
        self.steps: dict[int, list[Step]] = {node_id: [] for node_id in self.ids}
        self.logs: dict[int, RaftLog] = {}
        self.cores: dict[int, RaftCore] = {}
        self._queue: list[tuple[int, int, RaftMessage]] = []
        self._random = Random(seed)
        for node_id in self.ids:
            self.start(node_id)

    def start(self, node_id: int, *, commit_end: int = 0, is_new_disk: bool = True) -> None:
        """Start a process; without `is_new_disk` on the log that the one before it had."""
        old = self.logs.get(node_id)
        if old is None or is_new_disk:
            log = RaftLog(start_offset=0, previous_epoch=0, entries=(), term=Term(0, None), is_member=False)
        else:
            entries = [old.entry(offset) for offset in range(old.start_offset, old.end_offset)]
            log = RaftLog(
                start_offset=old.start_offset, previous_epoch=old.previous_epoch, entries=entries, term=old.term,
                is_member=old.is_member,
            )  # fmt: skip
        self.logs[node_id] = log
        self.cores[node_id] = RaftCore(
            log, node_id=NodeId(node_id), voter_ids=node_ids(*self.ids), commit_end=commit_end, timing=TIMING,
            random=Random(self._random.getrandbits(32)), now_ms=lambda: self.now_ms,
        )  # fmt: skip
        for peer_id in self.ids:
            if peer_id != node_id and peer_id in self.cores:
                self.cores[node_id].set_link(NodeId(peer_id), is_up=True)
                self.cores[peer_id].set_link(NodeId(node_id), is_up=True)

    def step(self, node_id: int, *messages: tuple[int, Heard], commands: Sequence[bytes] = ()) -> Step:
        """Let one voter do one step, and keep what it says for the others."""
        step = self.cores[node_id].step([(NodeId(peer_id), message) for peer_id, message in messages], commands)
        self.cores[node_id].next_step_at_ms()
        self.steps[node_id].append(step)
        for target_id, message in (*step.early, *step.messages):
            self.sent.append((node_id, target_id, message))
            if (node_id, target_id) not in self.cut and not self.is_lost(node_id, target_id, message):
                self._queue.append((node_id, target_id, message))
        return step

    def run(self, duration_s: float) -> None:
        end_ms = self.now_ms + int(duration_s * 1000)
        while self.now_ms < end_ms:
            self.now_ms += _STEP_MS
            queue, self._queue = self._queue, []
            for node_id in self.ids:
                inbox = [(source_id, message) for source_id, target_id, message in queue if target_id == node_id]
                self.step(node_id, *inbox)

    def isolate(self, node_id: int) -> None:
        for peer_id in self.ids:
            self.cut |= {(node_id, peer_id), (peer_id, node_id)}

    @property
    def leader_id(self) -> int:
        leaders = [node_id for node_id in self.ids if self.cores[node_id].is_leader]
        return max(leaders, key=lambda node_id: self.cores[node_id].term)

    @property
    def followers(self) -> list[int]:
        return [node_id for node_id in self.ids if node_id != self.leader_id]

    def commit_end(self, node_id: int) -> int:
        return self.steps[node_id][-1].commit_end

    def propose(self, node_id: int, *commands: bytes) -> list[LogEntry]:
        step = self.step(node_id, commands=commands)
        return [] if step.proposed is None else list(step.proposed)


def elected(count: int = 3, *, seed: int = 1) -> Table:
    """Return a table with a leader whose first entry is committed everywhere."""
    table = Table(count, seed=seed)
    table.run(3)
    assert {table.commit_end(node_id) for node_id in table.ids} == {1}
    return table
