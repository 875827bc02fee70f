"""Bugs of the quorum, each as one patch, applied around a run. No product module knows of them."""

from collections.abc import Callable
from typing import Any, Final
from weakref import WeakKeyDictionary

from ...protocol.ids import NodeId
from ...quorum.controller.controller import Controller
from ...quorum.raft.barriers import BarrierResult, Barriers
from ...quorum.raft.core import RaftCore
from ...quorum.raft.elections import Elections
from ...quorum.raft.eligibility import EmptyLogProbe
from ...quorum.raft.journal_items import CommitMark, JournalItem, LogEnd, LogEntry, Term
from ...quorum.raft.log import RaftLog
from ...quorum.raft.messages import AppendAck
from ...quorum.raft.pysyncobj_engine import RaftRules
from ...quorum.raft.step import Step
from .edited import edited
from .mutant import Mutant

_HELD_MAX: Final = 20
_FAR: Final = 2**40


def _truncate_always(_: Any) -> Any:
    def settle(log: RaftLog) -> None:
        if log._cut:
            log._items.append(LogEnd(log.end_offset, log.last_epoch))
            log._cut.clear()

    return settle


def _send_before_sync(original: Any) -> Any:
    def step(core: RaftCore, *arguments: Any) -> Step:
        done: Step = original(core, *arguments)
        done.early, done.messages = done.early + done.messages, []
        return done

    return step


def _only_early(*kinds: type) -> Callable[[Any], Any]:
    """Messages of these kinds leave before what they promise is on the disk."""

    def make(original: Any) -> Any:
        def step(core: RaftCore, *arguments: Any) -> Step:
            done: Step = original(core, *arguments)
            done.early += [addressed for addressed in done.messages if isinstance(addressed[1], kinds)]
            done.messages = [addressed for addressed in done.messages if not isinstance(addressed[1], kinds)]
            return done

        return step

    return make


def _leader_writes_later(original: Any) -> Any:
    """Entries of a leader go to its disk with those of its next steps: some at a time, in their order."""
    held: WeakKeyDictionary[RaftCore, list[JournalItem]] = WeakKeyDictionary()

    def step(core: RaftCore, *arguments: Any) -> Step:
        done: Step = original(core, *arguments)
        items = [*held.pop(core, ()), *done.items]
        is_entries = all(isinstance(item, LogEntry | CommitMark) for item in items)
        if core.is_leader and is_entries and 0 < len(items) < _HELD_MAX and not done.snapshot_work:
            held[core] = items
            items = []
        done.items = items
        return done

    return step


def _without_the_snapshots_epoch(original: Any) -> Any:
    def restart(log: RaftLog, end_offset: int, epoch: int) -> None:
        original(log, end_offset, log.last_epoch if log.epoch_at(end_offset - 1) != epoch else epoch)

    return restart


def _leads_at_once(_: Any) -> Any:
    return property(lambda _: True)


def _vote_not_on_disk(_: Any) -> Any:
    def set_term(log: RaftLog, term: Term) -> None:
        log.term = term

    return set_term


def _local_reads(_: Any) -> Any:
    def finished(barriers: Barriers) -> list[BarrierResult]:
        done = [BarrierResult(barrier.token, barriers._ends[barrier.sequence]) for barrier in barriers._waiting]
        barriers._waiting.clear()
        return done

    return finished


def _duplicate_votes(_: Any) -> Any:
    def on_vote(elections: Elections, peer_id: NodeId) -> bool:
        elections._votes.add(peer_id)
        return True

    return on_vote


def _older_term_acknowledges(original: Any) -> Any:
    def on_append_ack(core: RaftCore, peer_id: NodeId, message: AppendAck, now_ms: int) -> None:
        original(core, peer_id, message._replace(term=max(message.term, core.term)), now_ms)

    return on_append_ack


def _snapshot_without_log_match(_: Any) -> Any:
    def on_snapshot_notice(rules: RaftRules, peer_id: NodeId, *, term: int) -> None:
        rules._receive(peer_id, type="append_entries", term=term, commit_index=2**60, serialized=None)

    return on_snapshot_notice


def _new_disk_votes(_: Any) -> Any:
    return property(lambda _: True)


def _new_disk_counts(original: Any) -> Any:
    def append_ack(core: RaftCore, *arguments: Any, **keywords: Any) -> AppendAck:
        acknowledgement: AppendAck = original(core, *arguments, **keywords)
        return acknowledgement._replace(is_member=True)

    return append_ack


def _votes_for_any_log(original: Any) -> Any:
    def on_vote_request(rules: RaftRules, peer_id: NodeId, *, term: int, last_offset: int, last_epoch: int) -> None:
        original(rules, peer_id, term=term, last_offset=last_offset + _FAR, last_epoch=last_epoch + _FAR)

    return on_vote_request


def _decides_too_early(_: Any) -> Any:
    return property(lambda controller: controller._claimed_epoch is not None)


MUTANTS: Final = (
    Mutant(
        name="truncate-always",
        bug="an append cuts the log behind its first entry, also where nothing conflicts (B1)",
        owner=RaftLog,
        attribute="settle",
        make=_truncate_always,
    ),
    Mutant(
        name="send-before-sync",
        bug="messages leave before what they promise is on the disk (D1)",
        owner=RaftCore,
        attribute="step",
        make=_send_before_sync,
    ),
    Mutant(
        name="vote-not-on-disk",
        bug="terms and votes are kept in memory only (D2)",
        owner=RaftLog,
        attribute="set_term",
        make=_vote_not_on_disk,
    ),
    Mutant(
        name="local-reads",
        bug="a leader answers barriers without asking whether it still leads (B12)",
        owner=Barriers,
        attribute="finished",
        make=_local_reads,
    ),
    Mutant(
        name="duplicate-votes",
        bug="votes are counted, not voters (B2)",
        owner=Elections,
        attribute="on_vote",
        make=_duplicate_votes,
    ),
    Mutant(
        name="older-term-acknowledges",
        bug="an acknowledgement of an earlier leadership counts in this one (B3)",
        owner=RaftCore,
        attribute="_on_append_ack",
        make=_older_term_acknowledges,
    ),
    Mutant(
        name="snapshot-without-log-match",
        bug="a snapshot's message commits whatever the log has (B4)",
        owner=RaftRules,
        attribute="on_snapshot_notice",
        make=_snapshot_without_log_match,
    ),
    Mutant(
        name="new-disk-votes",
        bug="a voter that lost its disk takes itself for one of a new cluster",
        owner=EmptyLogProbe,
        attribute="is_new_cluster",
        make=_new_disk_votes,
    ),
    Mutant(
        name="new-disk-counts",
        bug="copies on a disk that has not caught up count for commits",
        owner=RaftCore,
        attribute="_append_ack",
        make=_new_disk_counts,
    ),
    Mutant(
        name="decides-too-early",
        bug="a controller decides before it has applied an entry of its own epoch",
        owner=Controller,
        attribute="is_active",
        make=_decides_too_early,
    ),
    Mutant(
        name="follower-answers-before-sync",
        bug="a follower acknowledges entries that are not on its disk yet",
        owner=RaftCore,
        attribute="step",
        make=_only_early(AppendAck),
    ),
    Mutant(
        name="leader-counts-before-sync",
        bug="a leader counts itself for commits before its own disk has the entries",
        owner=RaftCore,
        attribute="step",
        make=_leader_writes_later,
    ),
    Mutant(
        name="snapshot-without-its-epoch",
        bug="a log that begins behind a snapshot has the epoch of what it had before, not the snapshot's",
        owner=RaftLog,
        attribute="restart",
        make=_without_the_snapshots_epoch,
    ),
    Mutant(
        name="barrier-without-an-own-entry",
        bug="a new leader begins barriers before an entry of its own term is committed",
        owner=RaftCore,
        attribute="_has_committed_own_term",
        make=_leads_at_once,
    ),
    Mutant(
        name="votes-of-earlier-terms-count",
        bug="a vote of an earlier term elects its receiver in this one",
        owner=RaftCore,
        attribute="_deliver",
        make=edited("if message.term == self.term and self._elections.on_vote", "if self._elections.on_vote"),
    ),
    Mutant(
        name="votes-for-shorter-logs",
        bug="a voter votes for a candidate whose log ends before its own",
        owner=RaftRules,
        attribute="on_vote_request",
        make=_votes_for_any_log,
    ),
    Mutant(
        name="acknowledged-with-the-snapshot",
        bug="a voter acknowledges with a snapshot what follows that in its log, which no leader has compared",
        owner=RaftCore,
        attribute="on_intent",
        make=edited("next_offset = min(next_offset, self._step.installed.end_offset)", "pass"),
    ),
)


def mutant_named(name: str) -> Mutant:
    return next(mutant for mutant in MUTANTS if mutant.name == name)
