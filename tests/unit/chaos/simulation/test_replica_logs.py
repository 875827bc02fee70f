"""The judge of the simulation knows what a replica's log holds, and what it held but does not count."""

from struct import pack
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.chaos.simulation.cluster.replica_judge import ReplicaJudge
from penstock.chaos.simulation.cluster.replica_logs import Batch, CompactedReplicaLog, ReplicaLog


def batch(
    base_offset: int, end_offset: int, *, epoch: int, crc: int = 0, producer_id: int = -1, sequence: int = -1
) -> bytes:
    """The head of a record batch, which is all that the judge reads, and a byte of records."""
    count = end_offset - base_offset
    head = pack(">qiibIhi", base_offset, 50, epoch, 2, crc, 0, count - 1)
    return head + pack(">qqqhii", 0, 0, producer_id, 0, sequence, count) + b"r"


class Disk:
    """Segments by base offset, and a log that is followed as they change."""

    def __init__(self, known: dict[tuple[int, int], Batch]) -> None:
        self.segments: dict[int, bytearray] = {}
        self.log = ReplicaLog()
        self.known = known

    def has(self, *batches: bytes, segment: int) -> None:
        self.segments = {segment: bytearray(b"".join(batches))}

    def follow(self, *, start_offset: int, end_offset: int) -> list[Batch]:
        new = self.log.follow(
            self.segments.get,
            first_segment=min(self.segments),
            start_offset=start_offset,
            end_offset=end_offset,
            known=self.known,
        )
        for one in new:
            self.known.setdefault((one.base_offset, one.leader_epoch), one)
        return new


def leader_and_diverged_follower() -> tuple[Disk, Disk]:
    """Both have offsets 0 to 2; what the leader has at 3 is of epoch 1, what the follower has there of epoch 0."""
    known: dict[tuple[int, int], Batch] = {}
    leader, follower = Disk(known), Disk(known)
    leader.has(batch(0, 3, epoch=0), batch(3, 4, epoch=1), batch(4, 9, epoch=1), segment=0)
    leader.follow(start_offset=0, end_offset=9)
    follower.has(batch(0, 3, epoch=0), batch(3, 4, epoch=0), segment=0)
    follower.follow(start_offset=0, end_offset=4)
    return leader, follower


def test_what_a_log_had_before_it_began_anew_is_not_below_what_it_has() -> None:
    leader, follower = leader_and_diverged_follower()
    # The leader's log begins at 6 now, in the midst of a batch: the follower begins there, then with all of that batch.
    follower.has(segment=6)
    assert follower.follow(start_offset=6, end_offset=6) == []
    follower.has(segment=4)
    assert follower.follow(start_offset=4, end_offset=4) == []
    assert follower.log.last_below(4) is None
    follower.has(batch(4, 9, epoch=1), segment=4)
    (new,) = follower.follow(start_offset=6, end_offset=9)
    assert new.fingerprint == leader.known[4, 1].fingerprint


def test_a_log_that_begins_anew_below_its_end_is_followed_from_there() -> None:
    """In the turn in which it takes in the whole of the leader's first batch, of which its last one had a part."""
    known: dict[tuple[int, int], Batch] = {}
    leader, follower = Disk(known), Disk(known)
    leader.has(batch(0, 3, epoch=0), batch(3, 9, epoch=1), segment=0)
    leader.follow(start_offset=0, end_offset=9)
    follower.has(batch(0, 3, epoch=0), batch(3, 4, epoch=0), segment=0)
    follower.follow(start_offset=0, end_offset=4)
    follower.has(segment=4)
    assert follower.follow(start_offset=4, end_offset=4) == []
    follower.has(batch(3, 9, epoch=1), segment=3)
    (new,) = follower.follow(start_offset=4, end_offset=9)
    assert new.fingerprint == leader.known[3, 1].fingerprint


def test_what_is_deleted_need_not_be_what_others_had() -> None:
    leader, follower = leader_and_diverged_follower()
    # The leader's log begins at 4, where the follower's ends: that goes on, and deletes all before in the same turn.
    follower.segments[0] += batch(4, 9, epoch=1)
    (new,) = follower.follow(start_offset=4, end_offset=9)
    assert new.fingerprint == leader.known[4, 1].fingerprint


def test_logs_differ_that_differ_above_their_start() -> None:
    leader, follower = leader_and_diverged_follower()
    follower.segments[0] += batch(4, 9, epoch=1)
    (new,) = follower.follow(start_offset=3, end_offset=9)
    assert new.fingerprint != leader.known[4, 1].fingerprint


def test_a_log_of_which_all_was_deleted_goes_on_from_what_it_had() -> None:
    leader, other = leader_and_diverged_follower()
    other.has(batch(0, 3, epoch=0), batch(3, 4, epoch=1), batch(4, 9, epoch=1), segment=0)
    other.follow(start_offset=0, end_offset=9)
    for disk in (leader, other):
        disk.has(segment=9)
        disk.follow(start_offset=9, end_offset=9)
    leader.has(batch(9, 10, epoch=1), segment=9)
    other.has(batch(9, 10, epoch=1), segment=9)
    (new,), (others,) = (disk.follow(start_offset=9, end_offset=10) for disk in (leader, other))
    assert new.fingerprint == others.fingerprint


def test_an_empty_log_that_has_moved_goes_on_from_what_it_had() -> None:
    leader, follower = leader_and_diverged_follower()
    follower.log = follower.log.moved_to(3)
    follower.has(segment=3)
    assert follower.follow(start_offset=3, end_offset=3) == []
    follower.has(batch(3, 4, epoch=1), segment=3)
    follower.known.pop((3, 1))
    (new,) = follower.follow(start_offset=3, end_offset=4)
    assert new.fingerprint == leader.log.batches[1].fingerprint


class Replica:
    """A replica as the judge sees it, on a machine of its own."""

    def __init__(self, node_id: int) -> None:
        self.segment = bytearray()
        self.log = SimpleNamespace(
            directory="/data", log_start_offset=0, local_log_start_offset=0, log_end_offset=0,
            first_segment_base_offset=0,
        )  # fmt: skip
        # What it remembers of its log is judged elsewhere: these batches are heads.
        self.log.damage = "not looked at"
        self.log.producers = SimpleNamespace(entries={})
        self.is_synced = True
        self.partition = SimpleNamespace(
            high_watermark=0,
            leader_epoch=1,
            is_leader=node_id == 1,
            maximal_isr=frozenset({1, 2}),
            pending_isr=None,
        )
        partition = SimpleNamespace(topic="t", index=0, log=self.log, state=self.partition)
        node = SimpleNamespace(
            has_parts=True,
            metadata=SimpleNamespace(image=SimpleNamespace(offset=0, topics=SimpleNamespace(by_name={}))),
            parts=SimpleNamespace(partitions=SimpleNamespace(hosted=[partition], find=lambda *_: partition)),
        )
        self.node = node
        self.machine: Any = SimpleNamespace(
            node_id=node_id, node=node, process=SimpleNamespace(last_turn=0), is_failure_expected=False,
            files=SimpleNamespace(look=self._look), written=self._look,
            is_safe=lambda *_, **_options: self.is_synced, is_damaged_in=lambda _: False,
        )  # fmt: skip

    def _look(self, path: str) -> bytearray | None:
        return self.segment if path.endswith(f"/{0:020}.log") else None

    def has(self, *batches: bytes, start_offset: int, end_offset: int, high_watermark: int) -> None:
        self.segment[:] = b"".join(batches)
        self.log.log_start_offset = self.log.local_log_start_offset = start_offset
        self.log.log_end_offset = end_offset
        self.partition.high_watermark = high_watermark

    def is_told(self, registration: object) -> None:
        """The metadata have this of the only partition."""
        topic = SimpleNamespace(name="t", partitions=[registration])
        brokers = {broker_id: SimpleNamespace(epoch=10 + broker_id) for broker_id in (1, 2, 3)}
        self.node.metadata.image = SimpleNamespace(
            offset=1, brokers=brokers, topics=SimpleNamespace(by_name={"t": topic})
        )

    def is_gone(self) -> None:
        self.node.parts.partitions = SimpleNamespace(hosted=[], find=lambda *_: None)


def test_what_differs_below_the_start_of_a_log_is_not_committed_there() -> None:
    leader, follower = Replica(1), Replica(2)
    judge = ReplicaJudge([leader.machine, follower.machine], lambda *_: None)
    leader.has(batch(0, 3, epoch=0), batch(3, 4, epoch=1), start_offset=0, end_offset=4, high_watermark=4)
    follower.has(batch(0, 3, epoch=0), batch(3, 4, epoch=0), start_offset=4, end_offset=4, high_watermark=4)
    judge.look(0)
    assert judge.violations == []


def test_what_differs_above_the_start_of_a_log_is_found() -> None:
    leader, follower = Replica(1), Replica(2)
    judge = ReplicaJudge([leader.machine, follower.machine], lambda *_: None)
    leader.has(batch(0, 3, epoch=0), batch(3, 4, epoch=1), start_offset=0, end_offset=4, high_watermark=4)
    follower.has(batch(0, 3, epoch=0), batch(3, 4, epoch=0), start_offset=3, end_offset=4, high_watermark=4)
    judge.look(0)
    assert [violation.partition(":")[0] for violation in judge.violations] == ["Committed"]


def test_what_a_replica_committed_counts_though_its_disk_failed_in_the_same_turn() -> None:
    leader = Replica(1)
    judge = ReplicaJudge([leader.machine], lambda *_: None)
    leader.has(batch(0, 3, epoch=1), start_offset=0, end_offset=3, high_watermark=0)
    judge.look(0)
    assert judge.committed_end("t", 0) == 0
    leader.partition.high_watermark = 3
    leader.is_gone()
    judge.look(0)
    assert judge.committed_end("t", 0) == 3


@pytest.mark.parametrize(("damage", "count"), [(None, 1), ("it could not be begun anew", 0)])
def test_a_high_watermark_falls_only_with_a_log_that_is_lost(
    monkeypatch: pytest.MonkeyPatch, damage: str | None, count: int
) -> None:
    monkeypatch.setattr("penstock.chaos.simulation.cluster.replica_judge.look_at_memory", lambda *_, **__: ())
    follower = Replica(2)
    judge = ReplicaJudge([follower.machine], lambda *_: None)
    follower.has(batch(0, 3, epoch=0), start_offset=0, end_offset=3, high_watermark=3)
    judge.look(0)
    follower.log.damage = damage
    follower.has(start_offset=0, end_offset=0, high_watermark=0)
    judge.look(0)
    assert sum("high watermark 3 becomes 0" in one for one in judge.violations) == count


@pytest.mark.parametrize(
    ("known", "count"), [({}, 1), ({7: (0, 2)}, 1), ({7: (0, 5)}, 0), ({7: (1, -1)}, 0)],
    ids=["unknown", "known by an older batch", "known", "in a later epoch"],
)  # fmt: skip
def test_a_new_leader_that_forgot_a_producer_of_what_is_deleted_is_found(
    known: dict[int, tuple[int, int]], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once it takes records in: until its log is cut, it knows what it knew before."""
    monkeypatch.setattr("penstock.chaos.simulation.cluster.replica_judge.look_at_memory", lambda *_, **__: ())
    leader, follower = Replica(1), Replica(2)
    judge = ReplicaJudge([leader.machine, follower.machine], lambda *_: 6)
    batches = (batch(0, 3, epoch=0, producer_id=7, sequence=0), batch(3, 6, epoch=0, producer_id=7, sequence=3))
    leader.log.producers.entries = {7: SimpleNamespace(epoch=0, last_sequence=5)}
    leader.has(*batches, start_offset=0, end_offset=6, high_watermark=6)
    judge.look(0)
    follower.log.producers.entries = {
        producer_id: SimpleNamespace(epoch=epoch, last_sequence=last) for producer_id, (epoch, last) in known.items()
    }
    follower.has(start_offset=6, end_offset=6, high_watermark=6)
    follower.partition.leader_epoch, follower.partition.is_leader = 2, True
    judge.look(0)
    assert judge.violations == []
    follower.log.damage = None
    judge.look(0)
    assert sum(one.startswith("Producers: ") for one in judge.violations) == count


def registered(*, isr: tuple[int, ...] = (1, 2), elr: tuple[int, ...] = ()) -> Any:
    return SimpleNamespace(leader=1, leader_epoch=1, partition_epoch=0, isr=isr, elr=elr, replicas=(1, 2))


@pytest.mark.parametrize("members", [{"isr": (1, 2)}, {"isr": (1,), "elr": (2,)}])
def test_who_may_be_elected_has_what_was_committed_though_the_leader_does_not_know_yet(
    members: dict[str, tuple[int, ...]],
) -> None:
    leader, follower, former = Replica(1), Replica(2), Replica(3)
    judge = ReplicaJudge([leader.machine, follower.machine, former.machine], lambda *_: None)
    for one in (leader, former):
        one.has(batch(0, 3, epoch=0), batch(3, 4, epoch=0), start_offset=0, end_offset=4, high_watermark=0)
    former.partition.high_watermark = 4
    follower.has(batch(0, 3, epoch=0), start_offset=0, end_offset=3, high_watermark=0)
    judge.look(0)
    assert judge.violations == []
    leader.is_told(registered(**members))
    judge.look(0)
    (violation,) = judge.violations
    assert violation.startswith("StrongIsr: node 2 ")


@pytest.mark.parametrize(
    ("broker_epoch", "count"),
    [(12, 1), (-1, 1), (7, 0)],
    ids=["the registered process", "any process", "one before it"],
)
def test_leader_proposes_no_replica_that_lacks_what_was_committed(broker_epoch: int, count: int) -> None:
    """What it says of a process that has been replaced, the controller refuses."""
    leader, follower, former = Replica(1), Replica(2), Replica(3)
    judge = ReplicaJudge([leader.machine, follower.machine, former.machine], lambda *_: None)
    leader.is_told(registered(isr=(1,)))
    leader.partition.maximal_isr = frozenset({1})
    for one in (leader, former):
        one.has(batch(0, 3, epoch=0), batch(3, 4, epoch=0), start_offset=0, end_offset=4, high_watermark=0)
    former.partition.high_watermark = 4
    follower.has(batch(0, 3, epoch=0), start_offset=0, end_offset=3, high_watermark=0)
    judge.look(0)
    assert judge.violations == []
    leader.partition.maximal_isr = frozenset({1, 2})
    leader.partition.pending_isr = SimpleNamespace(members=((1, -1), (2, broker_epoch)))
    judge.look(0)
    assert len(judge.violations) == count
    assert all(one.startswith("Joining: t-0 of node 1 proposes node 2 ") for one in judge.violations)


def test_where_only_what_is_synced_counts_each_member_of_the_isr_has_synced_what_is_committed() -> None:
    leader, follower = Replica(1), Replica(2)
    judges = [
        ReplicaJudge([leader.machine, follower.machine], lambda *_: None, is_flushed=is_flushed)
        for is_flushed in (False, True)
    ]
    follower.is_synced = False
    leader.is_told(registered())
    for one in (leader, follower):
        one.has(batch(0, 3, epoch=0), start_offset=0, end_offset=3, high_watermark=3)
    for judge in judges:
        judge.look(0)
        judge.look(0)
    assert judges[0].violations == []
    (violation,) = judges[1].violations
    assert violation.startswith("Synced: node 2 ")


class CompactedDisk:
    """Segments by base offset, and a compacted log that is followed as they change."""

    def __init__(self, known: dict[tuple[int, int], Batch]) -> None:
        self.segments: dict[int, bytearray] = {}
        self.log = CompactedReplicaLog()
        self.known = known

    def follow(self, segments: dict[int, bytes], *, end_offset: int) -> list[Batch]:
        self.segments = {base: bytearray(data) for base, data in segments.items()}
        new = self.log.follow_compacted(
            self.segments.get, segments=sorted(segments), end_offset=end_offset, known=self.known
        )
        for one in new:
            self.known.setdefault((one.base_offset, one.leader_epoch), one)
        return new


A, B, C, D = (batch(offset, offset + 2, epoch=0, crc=offset) for offset in (0, 2, 4, 6))


def test_a_log_goes_on_behind_what_was_compacted_away() -> None:
    disk = CompactedDisk({})
    assert len(disk.follow({0: A + B, 4: C}, end_offset=6)) == 3
    # The last batch is gone, then found elsewhere, then written anew: none of it is a cut.
    assert [one.base_offset for one in disk.follow({0: A, 6: D}, end_offset=8)] == [6]
    assert disk.follow({0: A + D}, end_offset=8) == []
    assert disk.follow({0: A + batch(6, 8, epoch=0, crc=99)}, end_offset=8) == []
    assert [one.base_offset for one in disk.log.batches] == [0, 2, 4, 6]


def test_a_compacted_log_that_is_cut_and_goes_on_otherwise_has_lost_what_it_had() -> None:
    disk = CompactedDisk({})
    disk.follow({0: A + B + C}, end_offset=6)
    new = disk.follow({0: A + B + batch(4, 6, epoch=1)}, end_offset=6)
    assert [(one.base_offset, one.leader_epoch) for one in new] == [(4, 1)]
    assert disk.follow({0: A}, end_offset=2) == []
    assert [one.base_offset for one in disk.log.batches] == [0]


def test_a_replica_that_fetched_what_was_compacted_is_compared_by_what_is_left() -> None:
    known: dict[tuple[int, int], Batch] = {}
    leader, follower = CompactedDisk(known), CompactedDisk(known)
    whole = leader.follow({0: A + B + C}, end_offset=6)
    compacted = follower.follow({0: A + C}, end_offset=6)
    assert [one.fingerprint for one in compacted] == [whole[0].fingerprint, whole[2].fingerprint]
