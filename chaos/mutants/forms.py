"""The form in which each known bug is looked for: runs or a story, and what it breaks in them, or a unit test."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

from msgspec import Struct

from . import (
    damage_mutants,
    drain_mutants,
    group_mutants,
    line_mutants,
    move_mutants,
    quorum_mutants,
    replication_mutants,
    reported_mutants,
    specification_mutants,
    transaction_mutants,
)

SMALL_CLUSTER: Final = ("--nodes", "3", "--brokers", "0", "--log-dirs", "1", "--no-compaction", "--no-tiers")
"""Options of runs that look for one bug: what they do not leave to the seed. Those of a form come behind, and win."""
# Options of directed runs that several have in common.
_PLAIN: Final = "--members 0 --no-transactions --profile"
_TRANSACTIONS: Final = "--members 0 --transactions --profile"
_MEMBERS: Final = "--members 3 --no-transactions --profile"


class Form(Struct, frozen=True):
    """`options` direct the runs; `breaks` is a regular expression of what the first run that finds the bug says."""

    options: str
    breaks: str
    engine: Literal["cluster", "quorum"] = "cluster"


class BrokenStory(Struct, frozen=True):
    """A run of whole nodes in which step after step is directed (`tests/helpers/story_program.py` tells it by name)."""

    name: str
    breaks: str


def _quorum(breaks: str, options: str = "--faults-s 12") -> Form:
    return Form(options, breaks, "quorum")


_OF_REPLICATION: Final = {
    "truncate-to-high-watermark": Form(f"{_PLAIN} faults", r"StrongIsr: |Committed: |LOST: "),
    "acknowledge-at-append": Form(f"{_PLAIN} faults", r"was acknowledged at offset \d+ of partition \d+, which is"),
    "no-partition-epoch-compare": Form(f"{_PLAIN} faults", r"MaximalIsr: |StrongIsr: "),
    "committed-isr-only": Form(f"{_PLAIN} faults", r"StrongIsr: "),
    "follower-not-fenced": Form(f"{_PLAIN} faults", r"StrongIsr: |Committed: |LogMatching: "),
}
_OF_GROUPS: Final = {
    "one-assignment-for-all": Form(f"{_MEMBERS} faults", r"both have partition \d in epoch "),
    "generations-begin-anew": Form(
        f"{_MEMBERS} faults", r"gets epoch \d+ after epoch \d+|both have partition \d in epoch "
    ),
    "given-while-held": Form(f"{_MEMBERS} faults", r"is given partition \d, which \S+ has and has not let go"),
    "commit-answered-at-append": Form(
        f"{_MEMBERS} faults", r"gets epoch|both have partition|the committed offset was fetched as"
    ),
    "first-offset-wins": Form(f"{_MEMBERS} faults", r"the committed offset was fetched as \d+, where only .* can be"),
}
_OF_TRANSACTIONS: Final = {
    "marker-to-first-partition": Form(f"{_TRANSACTIONS} faults", r"TORN: |LOST: |STUCK: "),
    "open-transactions-are-stable": Form(f"{_TRANSACTIONS} faults", r"PRECOMMITTED_READ: |ABORTED_READ: "),
    "aborted-not-told": Form(f"{_TRANSACTIONS} faults", r"ABORTED_READ: "),
    "prepared-forgotten-at-load": Form(f"{_TRANSACTIONS} faults", r"LOST: |STUCK: |not live after healing"),
    "zombie-not-fenced": Form(
        f"{_TRANSACTIONS} faults",
        r"LOST: |TORN: |PRECOMMITTED_READ: |ABORTED_READ: |INPUT_TWICE: |OFFSETS_TORN: "
        # A zombie has committed the transaction of the producer that took its place.
        r"|the marker commits .*, and no client asked for that",
    ),
}
_OF_DRAINS: Final = {
    "drain-moves-nothing": Form(f"{_PLAIN} drains", r"Drained: node \d leads "),
    "drained-is-elected": Form(f"{_PLAIN} drains", r"Drained: node \d leads "),
    "gathered-changes-are-events": Form(f"{_PLAIN} drains", r"Events: \d+\.\d+ is "),
}
_OF_MOVES: Final = {
    "takes-over-behind": Form(f"{_PLAIN} moves --log-dirs 2", r"Moved: \S+ of node \d ends at \d+ in |Remembered: "),
    "cut-not-copied": Form(f"{_PLAIN} moves --log-dirs 2", r"Moved: |LogMatching: |StrongIsr: |Committed: "),
    "safe-before-its-name": Form(f"{_PLAIN} moves --log-dirs 2", r"Synced: node \d has not synced "),
}
_OF_DAMAGE: Final = {
    "findings-come-to-nothing": Form(f"{_PLAIN} damage", r"Damaged: \S+ of node \d is not made good"),
    "damage-is-copied-to-the-tier": Form(f"--tiers {_PLAIN} damage", r"the tier's copy \S+ is no log: "),
}
_OF_LINES: Final = {
    "shrink-counts-when-proposed": Form(f"{_PLAIN} faults", r"MaximalIsr: "),
    "own-epoch-ignored": Form(f"{_PLAIN} elections", r"Uncut: |not live after healing"),
    "oldest-transaction-ignored": Form(f"{_TRANSACTIONS} faults", r"PRECOMMITTED_READ: |ABORTED_READ: "),
    "producers-not-reloaded": Form(f"{_PLAIN} faults", r"Remembered: .* it remembers "),
    "epochs-not-cut": Form(f"{_PLAIN} elections", r"Remembered: .* its leader epochs "),
    "markers-before-the-decision": Form(
        f"{_TRANSACTIONS} faults",
        r"LOST: |TORN: |PRECOMMITTED_READ: |ABORTED_READ: |STUCK: |not live after healing",
    ),
    "old-generation-commits": Form(f"{_MEMBERS} zombies", r"a zombie was not refused: commit of "),
    "active-before-replay": Form(f"{_PLAIN} faults", r"MaximalIsr: |StrongIsr: |Monotone: |OneLeader: |Committed: "),
    "snapshot-forgets-transactions": Form(f"{_TRANSACTIONS} restarts", r"Remembered: .* it remembers "),
    "gap-between-segments": Form(f"{_PLAIN} power", r"Remembered: .* its batches end at |Joining: |StrongIsr: "),
    "elr-does-not-count": Form(f"{_PLAIN} faults", r"MaximalIsr: "),
    "unclean-stop-taken-for-clean": Form(f"{_PLAIN} power", r"StrongIsr: node \d is in the ELR "),
    "unsynced-follower-counts": Form(f"{_PLAIN} elections", r"Synced: "),
    "verification-survives-the-marker": Form(f"{_TRANSACTIONS} races", r"ABORTED_READ: |STUCK: "),
    "one-batch-remembered": Form(f"{_PLAIN} faults", r"Remembered: .* it remembers "),
    "marker-taken-for-written": Form(
        f"{_TRANSACTIONS} elections",
        r"TORN: |LOST: |STUCK: |ABORTED_READ: |INPUT_TWICE: |no marker ends |not live after healing",
    ),
    "deleted-before-it-is-tiered": Form(f"--tiers {_PLAIN} tiers", r"Tiered: .* and the tier lacks the batch at "),
    "unstable-is-copied": Form(f"--tiers {_PLAIN} tiers", r"the tier's copies \S+ and \S+ differ|Tiered: "),
    "pending-offset-wins": Form(f"{_TRANSACTIONS} races", r"OFFSET: "),
    "gap-in-a-compacted-topic": Form(
        f"{_TRANSACTIONS} power", r"Remembered: .* its batches end at |Joining: |StrongIsr: "
    ),
}
_OF_SPECIFICATIONS: Final = {
    "earlier-start-registers": Form(f"{_PLAIN} faults", r"Another process has taken the place of this one as broker "),
    "unheard-follower-counts": Form(f"{_PLAIN} faults", r"StrongIsr: "),
    "join-below-the-high-watermark": Form(f"{_PLAIN} faults", r"Joining: "),
    "answer-for-another-offset": Form(f"{_PLAIN} elections", r"Uncut: |Remembered: |LogMatching: |StrongIsr: "),
    "unsynced-leader-counts": Form(f"{_PLAIN} faults", r"Synced: "),
    "transactions-as-they-were-left": Form(
        f"{_TRANSACTIONS} elections", r"ABORTED_READ: |LOST: |TORN: |STUCK: |PRECOMMITTED_READ: "
    ),
}
_OF_REPORTS: Final = {
    "any-live-replica-is-elected": Form(f"{_PLAIN} faults", r"Committed: |Producers: |StrongIsr: |LOST: "),
    "readable-before-committed": Form(
        f"{_PLAIN} faults", r"read at offset \d+ of partition \d+, which is committed up to"
    ),
    "partitions-added-in-memory": Form(
        f"{_TRANSACTIONS} elections", r"ABORTED_READ: |PRECOMMITTED_READ: |LOST: |TORN: |STUCK: "
    ),
    "retry-answered-with-offset-0": Form(f"{_PLAIN} faults", r"MOVED: "),
    "fetch-begins-behind-the-batch": Form(f"{_PLAIN} faults", r"LOST: |StrongIsr: |Joining: |Committed: "),
    "failed-load-is-final": Form(f"{_MEMBERS} disks", r"not live after healing"),
}
_OF_THE_QUORUM: Final = {
    "truncate-always": _quorum(r"divergence: |acknowledged loss: "),
    "send-before-sync": _quorum(r"divergence: |acknowledged loss: |two leaders in term "),
    "vote-not-on-disk": _quorum(r"two leaders in term "),
    "local-reads": _quorum(r"stale barrier read: "),
    "snapshot-without-log-match": _quorum(r"divergence: "),
    "new-disk-votes": _quorum(r"divergence: |acknowledged loss: |two leaders in term "),
    "follower-answers-before-sync": _quorum(r"divergence: |acknowledged loss: "),
    "leader-counts-before-sync": _quorum(r"divergence: |acknowledged loss: "),
    "snapshot-without-its-epoch": _quorum(r"not live after healing|divergence: "),
    "barrier-without-an-own-entry": _quorum(r"stale barrier read: "),
    "decides-too-early": _quorum(r"decided on an old image: ", "--faults-s 12 --controllers"),
}
FORMS: Final[Mapping[str, Form]] = MappingProxyType(
    {
        **_OF_REPLICATION, **_OF_GROUPS, **_OF_TRANSACTIONS, **_OF_DRAINS, **_OF_MOVES, **_OF_DAMAGE, **_OF_LINES,
        **_OF_SPECIFICATIONS, **_OF_REPORTS, **_OF_THE_QUORUM,
    }
)  # fmt: skip
"""By mutant."""
STORIES: Final[Mapping[str, BrokenStory]] = MappingProxyType(
    {
        "no-broker-epoch-check": BrokenStory(
            "kip_903_a_process_that_is_gone_does_not_join_the_isr",
            r"StrongIsr: node \d is in the ISR .*, but lacks what is below 5, .* its log ends at 0",
        ),
        "earlier-progress-counts": BrokenStory(
            "progress_of_an_earlier_leadership_does_not_count",
            r"StrongIsr: node \d is in the ISR .*, but lacks what is below 5, .* its log ends at 3",
        ),
        "transaction-index-not-cut": BrokenStory(
            "a_marker_that_is_cut_off_opens_its_transaction_again", r"Remembered: .* its transaction index has "
        ),
        "join-behind-the-epoch-start": BrokenStory(
            "a_replica_joins_once_it_has_what_earlier_leaders_may_have_committed",
            r"Joining: .* which lacks what is committed below 5: its log ends at 3",
        ),
        "deleted-producers-unknown": BrokenStory(
            "a_retry_of_what_is_deleted_is_known_where_the_batch_never_was", r"Producers: .* knows None of producer "
        ),
        "refused-not-remembered": BrokenStory(
            "a_batch_behind_one_that_was_refused_in_passing_is_not_out_of_order",
            r"sends 2 records of sequence 4 to A: OUT_OF_ORDER_SEQUENCE_NUMBER",
        ),
        "older-member-epoch-commits": BrokenStory(
            "kip_1251_a_partition_is_not_committed_with_an_epoch_from_before_it_was_given",
            r"two commits offset 0 with member epoch 3: committed\nthe group's offset is 0",
        ),
    }
)
"""Of bugs that take several things in one order, which random runs hardly do."""
UNIT_TESTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "leader-epoch-not-compared": "broker/fetching/test_follower_session.py::"
        "test_new_leader_epoch_is_told_to_the_request_that_waits",
        "followed-already": "broker/replication/test_replica_fetcher.py::"
        "test_next_epoch_of_the_same_leader_is_asked_for_at_once",
        "answer-of-another-epoch": "broker/replication/test_fetch_plan.py::"
        "test_answer_of_an_earlier_leader_epoch_is_not_expected",
        "late-end-is-taken": "broker/transactions/test_transaction_shard.py::"
        "test_version_2_refuses_a_late_end_kafka_17754",
        "deleted-batches-are-new": "storage/log/test_restarted_producers.py::"
        "test_retry_is_recognised_after_a_loss_of_power_though_its_segment_is_deleted",
        "damaged-batches-are-replicated": "storage/log/test_log_follower.py::"
        "test_what_a_leader_cannot_have_sent_is_refused_as_a_whole",
        "damage-is-cut-off": "storage/log/test_recovery.py::"
        "test_corrupt_batch_below_the_recovery_point_is_damage_and_nothing_is_cut",
        "unknown-folders-are-removed": "broker/replicas/test_rules_of_logs.py::"
        "test_rule_10_folders_that_the_metadata_do_not_know_are_kept_as_stray",
        "uncommitted-end-forgotten-at-start": "storage/log/test_restarted_producers.py::"
        "test_after_a_restart_the_last_stable_offset_waits_for_a_marker_that_is_not_committed",
        "every-old-epoch-is-vouched-for": "broker/test_replication_of_nodes.py::"
        "test_records_that_were_never_committed_go_though_the_leaders_log_starts_behind_them",
        "records-tell-when-producers-expire": "storage/log/test_producer_state.py::"
        "test_timestamps_of_records_do_not_decide_when_a_producer_expires",
        "votes-of-earlier-terms-count": "quorum/raft/test_core.py::test_a_vote_counts_in_its_own_term_only",
        "votes-for-shorter-logs": "quorum/raft/test_core.py::test_no_voter_votes_for_a_log_that_ends_before_its_own",
        "acknowledged-with-the-snapshot": "quorum/raft/test_core.py::"
        "test_what_follows_an_installed_snapshot_is_not_acknowledged_with_it",
        "duplicate-votes": "quorum/raft/test_core.py::test_a_voter_has_one_vote",
        "older-term-acknowledges": "quorum/raft/test_core.py::test_an_acknowledgement_counts_in_its_own_term_only",
        "new-disk-counts": "quorum/raft/test_eligibility.py::"
        "test_a_new_disk_under_an_old_id_waits_until_it_has_caught_up",
    }
)
"""Of bugs that random runs hardly find: the unit test below `tests/unit` that does."""

SPECIFIED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "KafkaTruncateToHighWatermark": "truncate-to-high-watermark",
        "Kip101": "own-epoch-ignored",
        "Kip279": "follower-not-fenced",
        "Kip320FirstTry": "leader-epoch-not-compared",
        "CHECK incarnation id of a registration": "earlier-start-registers",
        "CHECK leader epoch when a fetcher is given a partition": "followed-already",
        "CHECK reset of what is known of followers": "earlier-progress-counts",
        "CHECK the follower was heard": "unheard-follower-counts",
        "CHECK the follower has what is committed": "join-below-the-high-watermark",
        "CHECK the follower has the start of the epoch": "join-behind-the-epoch-start",
        "CHECK fetch offset of an answer": "answer-for-another-offset",
        "CHECK leader epoch of an answer": "answer-of-another-epoch",
        "CHECK broker epochs of AlterPartition": "no-broker-epoch-check",
        "CHECK partition epoch of AlterPartition": "no-partition-epoch-compare",
        # By design a leader sends entries before it has synced them, so this one alone is no bug: with it, all are off.
        "LeaderFsyncBeforeAppendEntries": "send-before-sync",
        "LeaderFsyncBeforeIncludeInQuorum": "leader-counts-before-sync",
        "FollowerFsyncBeforeReply": "follower-answers-before-sync",
    }
)
"""The mutant for each broken version, check and switch of the specifications (`specification_mutants.py`)."""

BUGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        **replication_mutants.BUGS,
        **group_mutants.BUGS,
        **transaction_mutants.BUGS,
        **drain_mutants.BUGS,
        **move_mutants.BUGS,
        **damage_mutants.BUGS,
        **line_mutants.BUGS,
        **specification_mutants.BUGS,
        **reported_mutants.BUGS,
        **{mutant.name: mutant.bug for mutant in quorum_mutants.MUTANTS},
    }
)
"""What each is, by its name."""


def caught_by(name: str) -> str:
    """What is tried for a bug: engine and options of its directed runs, its story, or its unit test. KeyError when
    unknown."""
    if name in FORMS:
        return f"{FORMS[name].engine}: {FORMS[name].options}"
    return f"story: {STORIES[name].name}" if name in STORIES else f"unit test: {UNIT_TESTS[name]}"
