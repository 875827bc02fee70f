"""What the values mean, and the goals: what Penstock is held to beside Apache Kafka."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Final

from msgspec import Struct


class Measure(Struct, frozen=True, kw_only=True):
    """One value of a cell."""

    name: str
    title: str
    unit: str
    is_more_better: bool = False
    is_compared: bool = True
    """No ratio is made of what only tells who was the bottleneck."""


class Goal(Struct, frozen=True, kw_only=True):
    """A bound for the ratio of medians, Penstock to Apache Kafka, or for Penstock's own median."""

    cells: str
    measure: str
    at_least: float | None = None
    at_most: float | None = None
    is_ratio: bool = True

    def holds(self, value: float) -> bool:
        """Whether this ratio, or value, is good enough."""
        return (self.at_least is None or value >= self.at_least) and (self.at_most is None or value <= self.at_most)

    def __str__(self) -> str:
        sign, bound = ("≥", self.at_least) if self.at_least is not None else ("≤", self.at_most)
        return f"{sign} {bound:g}×" if self.is_ratio else f"{sign} {bound:,.10g}"


def _quantiles(name: str, title: str) -> tuple[Measure, ...]:
    labels = {"p50": "p50", "p95": "p95", "p99": "p99", "p999": "p99.9"}
    return tuple(
        Measure(name=f"{name}_{label}_ms", title=f"{title}, {shown}", unit="ms") for label, shown in labels.items()
    )


def _throughput(verb: str, title: str = "") -> tuple[Measure, ...]:
    title = title or verb
    return (
        Measure(name=f"{verb}_records_per_s", title=f"{title}: records", unit="1/s", is_more_better=True),
        Measure(name=f"{verb}_broker_cpu_s_per_gb", title=f"{title}: broker CPU", unit="s/GB"),
        Measure(name=f"{verb}_client_cpu_s_per_gb", title=f"{title}: client CPU", unit="s/GB", is_compared=False),
    )


MEASURES: Final[Sequence[Measure]] = (
    Measure(name="testing_cluster_s", title="tests: three nodes serve", unit="s"),
    Measure(name="testing_first_s", title="tests: start to first acks=all record in a new topic", unit="s"),
    Measure(name="testing_first_cpu_s", title="tests: CPU until then", unit="s"),
    Measure(name="testing_next_median_ms", title="tests: topic and first record of the next, median", unit="ms"),
    Measure(name="testing_next_worst_ms", title="tests: topic and first record of the next, worst", unit="ms"),
    Measure(name="testing_tests_per_minute", title="tests: a minute", unit="1/min", is_more_better=True),
    Measure(name="startup_s", title="start to first acknowledged record", unit="s"),
    Measure(name="listening_s", title="start to first answer", unit="s"),
    Measure(name="startup_cpu_s", title="CPU until the first record", unit="s"),
    Measure(name="idle_mib", title="resident memory, idle", unit="MiB"),
    *_throughput("produce"),
    *_throughput("consume"),
    *_quantiles("acknowledged", "acknowledged"),
    *_quantiles("end_to_end", "end to end"),
    Measure(name="broker_cpu_us_per_record", title="broker CPU a record", unit="µs"),
    Measure(name="requests_per_s", title="requests", unit="1/s", is_more_better=True),
    Measure(name="broker_cpu_us_per_request", title="broker CPU a request", unit="µs"),
    Measure(name="client_cpu_us_per_request", title="client CPU a request", unit="µs", is_compared=False),
    *(
        Measure(name=f"{name}_{what}", title=f"{title}: {told}", unit=unit)
        for name, title in (
            ("produce_alone", "one record, 1 in flight"),
            ("produce_piped", "one record, 50 in flight"),
            ("batch", "a batch of 16 KiB"),
            ("fetch_mib", "a MiB fetched"),
            ("fetch_empty", "a partition fetched in vain"),
            ("commit", "a commit of 10 partitions"),
        )
        for what, told, unit in (("cpu_us", "broker CPU", "µs"), ("calls", "system calls", "count"))
    ),
    *_quantiles("request", "request"),
    *(
        measure
        for name in ("idempotent", "transactional")
        for measure in (
            Measure(name=f"{name}_records_per_s", title=f"{name}: records", unit="1/s", is_more_better=True),
            Measure(name=f"{name}_broker_cpu_s_per_gb", title=f"{name}: broker CPU", unit="s/GB"),
        )
    ),
    Measure(name="transaction_time_ratio", title="transactional to idempotent: time", unit="×"),
    *_quantiles("transaction_commit", "commit"),
    *_quantiles("crowd_acknowledged", "acknowledged"),
    *_quantiles("crowd_delivered", "delivered"),
    Measure(name="crowd_connect_s", title="all connected", unit="s"),
    Measure(name="crowd_broker_cores", title="broker CPU", unit="cores"),
    Measure(name="crowd_mib", title="resident memory", unit="MiB"),
    Measure(name="alone_p50_ms", title="acknowledged without them, p50", unit="ms", is_compared=False),
    Measure(name="alone_p99_ms", title="acknowledged without them, p99", unit="ms", is_compared=False),
    Measure(name="beside_p50_ms", title="acknowledged beside them, p50", unit="ms", is_compared=False),
    Measure(name="beside_p99_ms", title="acknowledged beside them, p99", unit="ms", is_compared=False),
    Measure(name="beside_p99_ratio", title="p99, beside to without", unit="×", is_compared=False),
    Measure(name="exposition_ms", title="an exposition", unit="ms", is_compared=False),
    Measure(name="exposition_cpu_ms", title="an exposition: CPU", unit="ms", is_compared=False),
    Measure(name="list_ms", title="the longest list", unit="ms", is_compared=False),
    Measure(name="answer_ms", title="the longest answer", unit="ms", is_compared=False),
    Measure(name="turn_ms_median", title="longest turn meanwhile, median", unit="ms", is_compared=False),
    Measure(name="turn_ms_max", title="longest turn meanwhile, worst", unit="ms", is_compared=False),
    Measure(
        name="scraping_cpu_ratio", title="broker CPU a request, metrics read to not read", unit="×", is_compared=False
    ),
    Measure(name="cold_mb_per_s", title="old records read", unit="MB/s", is_more_better=True),
    Measure(name="cold_broker_cores", title="broker CPU meanwhile", unit="cores"),
    Measure(name="acknowledged_p99_ratio", title="acknowledged, p99, beside to without", unit="×", is_compared=False),
    Measure(name="end_to_end_p99_ratio", title="end to end, p99, beside to without", unit="×", is_compared=False),
    Measure(name="compaction_mb_per_s", title="compacted", unit="MB/s", is_more_better=True),
    Measure(name="compaction_cpu_s_per_gb", title="compacted: broker CPU", unit="s/GB"),
    Measure(name="compaction_left_percent", title="compacted: what is left", unit="%", is_compared=False),
    *(
        Measure(name=f"{name}_p99_{when}_ms", title=f"{title} {how}, p99", unit="ms")
        for name, title in (("acknowledged", "acknowledged"), ("end_to_end", "end to end"))
        for when, how in (("alone", "without it"), ("beside", "beside it"))
    ),
    *(
        measure
        for name, title in (("offsets", "__consumer_offsets"), ("transactions", "__transaction_state"))
        for measure in (
            Measure(name=f"{name}_mib", title=f"a partition of {title}", unit="MiB", is_compared=False),
            Measure(name=f"{name}_load_ms", title=f"{title} loaded", unit="ms"),
            Measure(name=f"{name}_kill_load_ms", title=f"{title} loaded after SIGKILL", unit="ms"),
        )
    ),
    Measure(name="create_s", title="created", unit="s"),
    Measure(name="serving_s", title="created and every partition answers", unit="s"),
    Measure(name="delete_s", title="deleted", unit="s"),
    Measure(name="added_mib", title="memory added", unit="MiB"),
    Measure(name="kib_per_partition", title="memory an idle partition", unit="KiB"),
    Measure(name="create_slowest_ms", title="slowest answer to others while they are made", unit="ms"),
    Measure(name="clean_stop_s", title="clean stop", unit="s"),
    *(
        measure
        for name, title in (
            ("restart", "started again"),
            ("kill_one_restart", "one started again after SIGKILL"),
            ("kill_restart", "started again after SIGKILL"),
        )
        for measure in (
            Measure(name=f"{name}_s", title=f"{title}, to first record", unit="s"),
            Measure(name=f"{name}_cpu_s", title=f"{title}: CPU until then", unit="s"),
            Measure(name=f"{name}_written_s", title=f"{title}, until all took a record", unit="s"),
        )
    ),
    Measure(name="largest_mib", title="resident memory of the largest node", unit="MiB"),
    Measure(name="open_files", title="open files of a node", unit="count", is_compared=False),
    *_quantiles("commit", "committed"),
    Measure(name="disk_sync_p50_ms", title="a sync of the disk alone, p50", unit="ms", is_compared=False),
    Measure(
        name="commit_p50_in_syncs", title="committed, p50, beside a sync of the disk", unit="syncs", is_compared=False
    ),
    Measure(name="commits_per_s", title="committed", unit="1/s", is_more_better=True),
    Measure(name="kill_failover_median_ms", title="controller killed to next commit, median", unit="ms"),
    Measure(name="kill_failover_worst_ms", title="controller killed to next commit, worst", unit="ms"),
    Measure(name="pause_failover_median_ms", title="controller paused to next commit, median", unit="ms"),
    Measure(name="pause_failover_worst_ms", title="controller paused to next commit, worst", unit="ms"),
    *(
        Measure(name=f"{name}_gap_{which}_ms", title=f"{title}, without acknowledgement, {which}", unit="ms")
        for name, title in (
            ("leader_kill", "leader killed"),
            ("controller_kill", "leader and controller killed"),
            ("leader_stop", "leader stopped in order"),
        )
        for which in ("median", "worst")
    ),
    *(
        Measure(name=f"client_{name}_gap_{which}_ms", title=f"{title}, {which}", unit="ms")
        for name, title in (
            ("write", "leader killed, without acknowledgement"),
            ("write_alone", "the same, connected to that node alone"),
            ("commit", "coordinator killed, without a commit"),
        )
        for which in ("median", "worst")
    ),
    *(
        measure
        for phase, title in (
            ("before", "three nodes"),
            ("growing", "two join, partitions move over"),
            ("grown", "five nodes"),
            ("shrinking", "partitions move back, two leave"),
            ("shrunk", "three nodes again"),
        )
        for measure in (
            Measure(name=f"{phase}_s", title=f"{title}: time", unit="s"),
            Measure(name=f"{phase}_records_per_s", title=f"{title}: records", unit="1/s", is_more_better=True),
            Measure(
                name=f"{phase}_least_records_per_s",
                title=f"{title}: records in the slowest second",
                unit="1/s",
                is_more_better=True,
            ),
            Measure(name=f"{phase}_acknowledged_p50_ms", title=f"{title}: acknowledged, p50", unit="ms"),
            Measure(name=f"{phase}_acknowledged_p99_ms", title=f"{title}: acknowledged, p99", unit="ms"),
        )
    ),
    Measure(name="group_formed_s", title="all members of the large group join at once", unit="s"),
    Measure(name="group_join_median_ms", title="a member joins, until the group is stable, median", unit="ms"),
    Measure(name="group_kill_median_ms", title="a session ends, until the group is stable, median", unit="ms"),
    Measure(name="groups_failover_s", title="coordinator killed until all groups go on", unit="s"),
    Measure(name="heartbeats_cpu_percent", title="CPU of all nodes for heartbeats, of a core", unit="%"),
    Measure(name="cluster_mib", title="resident memory of all nodes", unit="MiB"),
    Measure(name="idle_cpu_percent", title="CPU of all nodes, idle, of a core", unit="%"),
    Measure(name="partitions_failover_s", title="node killed until every partition takes records", unit="s"),
    Measure(name="broker_fenced_median_ms", title="broker killed until it leads nothing, median", unit="ms"),
    Measure(name="broker_fenced_worst_ms", title="broker killed until it leads nothing, worst", unit="ms"),
    Measure(name="controller_fenced_median_ms", title="controller killed until it leads nothing, median", unit="ms"),
    Measure(name="controller_fenced_worst_ms", title="controller killed until it leads nothing, worst", unit="ms"),
    Measure(name="serving_slowest_ms", title="slowest answer to others until all answer", unit="ms"),
    Measure(name="image_mib", title="memory added to a node", unit="MiB"),
    Measure(name="image_restart_s", title="all nodes started again", unit="s"),
    Measure(name="snapshot_slowest_ms", title="slowest answer while snapshots are made", unit="ms"),
    Measure(name="image_failover_worst_ms", title="controller killed to next commit, worst", unit="ms"),
    Measure(name="minutes", title="looked on", unit="min", is_compared=False),
    Measure(name="elections", title="elections", unit="count", is_compared=False),
    Measure(name="quiet_slowest_ms", title="slowest answer", unit="ms"),
    Measure(name="quota_producer_of_limit", title="bytes of a limited producer, of its quota", unit="×"),
    Measure(name="quota_consumer_of_limit", title="bytes of a limited consumer, of its quota", unit="×"),
    Measure(name="quota_administrator_of_limit", title="topics made, of the quota", unit="×"),
    Measure(name="quota_others_acknowledged_p99_alone_ms", title="others alone: acknowledged, p99", unit="ms"),
    Measure(name="quota_others_acknowledged_p99_beside_ms", title="beside limited clients", unit="ms"),
    Measure(name="quota_others_acknowledged_p99_ratio", title="the ratio of both", unit="×"),
    Measure(name="quota_others_end_to_end_p99_alone_ms", title="others alone: end to end, p99", unit="ms"),
    Measure(name="quota_others_end_to_end_p99_beside_ms", title="beside limited clients", unit="ms"),
    Measure(name="quota_others_end_to_end_p99_ratio", title="the ratio of both", unit="×"),
    Measure(name="quota_users_without_cpu_us", title="a thousand clients without quotas: CPU a request", unit="µs"),
    Measure(name="quota_users_with_cpu_us", title="a thousand clients with quotas: CPU a request", unit="µs"),
    Measure(name="quota_users_cpu_ratio", title="the ratio of both", unit="×"),
    *(
        measure
        for verb, title in (("produce", "Produce"), ("fetch", "Fetch"))
        for measure in (
            Measure(name=f"authorizer_{verb}_without_cpu_us", title=f"{title} without an authorizer: CPU", unit="µs"),
            Measure(name=f"authorizer_{verb}_with_cpu_us", title=f"{title} by an ACL: CPU", unit="µs"),
            Measure(name=f"authorizer_{verb}_cpu_ratio", title="the ratio of both", unit="×"),
        )
    ),
    *(
        measure
        for listener in ("tls", "plain")
        for verb in ("produce", "consume")
        for measure in _throughput(f"{listener}_{verb}", f"{listener}: {verb}")
    ),
    Measure(name="connects_per_s", title="connections that proved themselves", unit="1/s", is_more_better=True),
    Measure(name="connect_broker_cpu_ms", title="broker CPU of each", unit="ms"),
    Measure(name="connect_client_cpu_ms", title="client CPU of each", unit="ms", is_compared=False),
    Measure(name="job_mb_per_s", title="moved by the job", unit="MB/s", is_more_better=True),
    Measure(name="job_batch_ms", title="a batch", unit="ms"),
    Measure(name="job_broker_cpu_s_per_gb", title="broker CPU", unit="s/GB"),
    Measure(name="job_spark_cpu_s_per_gb", title="Spark's CPU", unit="s/GB", is_compared=False),
    *(
        measure
        for verb in ("produce", "consume")
        for measure in (
            Measure(name=f"library_{verb}_broker_cpu_s_per_gb", title=f"librdkafka, {verb}: broker CPU", unit="s/GB"),
            Measure(name=f"library_{verb}_client_cpu_us", title=f"librdkafka, {verb}: client CPU a record", unit="µs"),
        )
    ),
    *(
        Measure(name=f"{client}_connections", title=f"connections of a {client}", unit="count", is_compared=False)
        for client in ("producer", "consumer")
    ),
    *(
        Measure(name=f"node_{which}_mib", title=f"{title} of a node, idle", unit="MiB")
        for which, title in (
            ("resident", "resident memory"),
            ("proportional", "memory with its part of what is shared"),
        )
    ),
    *(
        measure
        for when, title in (
            ("before", "before"),
            ("sessions", "all wait for records"),
            ("consuming", "all have read and wait"),
        )
        for measure in (
            Measure(name=f"{when}_resident_mib", title=f"{title}: resident memory", unit="MiB"),
            Measure(
                name=f"{when}_proportional_mib", title=f"{title}: memory with its part of what is shared", unit="MiB"
            ),
        )
    ),
    Measure(name="kib_per_client", title="memory added by a client", unit="KiB"),
    Measure(name="session_cpu_ms", title="broker CPU of a session's begin", unit="ms"),
    Measure(name="session_read_cpu_us", title="broker CPU of a record to a session", unit="µs"),
    Measure(name="loaded_mib", title="resident memory, loaded", unit="MiB"),
)
"""What tables show, in this order; other values are kept in the results only."""

_STREAMS: Final = ("stream/{}/*", "prepared/{}")

GOALS: Final[Sequence[Goal]] = (
    Goal(cells="startup", measure="startup_s", at_most=0.15),
    Goal(cells="startup", measure="idle_mib", at_most=0.2),
    Goal(cells="memory", measure="loaded_mib", at_most=0.2),
    Goal(cells="compaction/*", measure="compaction_mb_per_s", at_least=1.0),
    Goal(cells="compaction/*", measure="compaction_cpu_s_per_gb", at_most=1.0),
    *(
        goal
        for client in ("producer", "consumer", "administrator")
        for goal in (
            Goal(cells="quotas/settle", measure=f"quota_{client}_of_limit", at_least=0.95, is_ratio=False),
            Goal(cells="quotas/settle", measure=f"quota_{client}_of_limit", at_most=1.05, is_ratio=False),
        )
    ),
    Goal(cells="quotas/others", measure="quota_others_acknowledged_p99_ratio", at_most=1.2, is_ratio=False),
    Goal(cells="quotas/others", measure="quota_others_end_to_end_p99_ratio", at_most=1.2, is_ratio=False),
    Goal(cells="quotas/users", measure="quota_users_cpu_ratio", at_most=1.05, is_ratio=False),
    *(
        Goal(cells="authorizer", measure=f"authorizer_{verb}_cpu_ratio", at_most=1.03, is_ratio=False)
        for verb in ("produce", "fetch")
    ),
    *(Goal(cells="tls/*", measure=f"tls_{verb}_broker_cpu_s_per_gb", at_most=1.0) for verb in ("produce", "consume")),
    Goal(cells="pipeline/*", measure="job_mb_per_s", at_least=1.0),
    Goal(cells="pipeline/*", measure="job_broker_cpu_s_per_gb", at_most=1.0),
    Goal(cells="sasl/*", measure="connects_per_s", at_least=1.0),
    Goal(cells="sasl/*", measure="connect_broker_cpu_ms", at_most=1.0),
    *(Goal(cells=cells.format("1KiB"), measure="produce_records_per_s", at_least=1.2) for cells in _STREAMS),
    *(Goal(cells=cells.format("100B"), measure="produce_records_per_s", at_least=1.5) for cells in _STREAMS),
    *(Goal(cells=cells.format("1KiB"), measure="produce_broker_cpu_s_per_gb", at_most=0.5) for cells in _STREAMS),
    *(Goal(cells=cells.format("100B"), measure="produce_broker_cpu_s_per_gb", at_most=0.25) for cells in _STREAMS),
    *(Goal(cells=cells.format("*"), measure="consume_records_per_s", at_least=1.0) for cells in _STREAMS),
    *(Goal(cells=cells.format("*"), measure="consume_broker_cpu_s_per_gb", at_most=0.6) for cells in _STREAMS),
    *(
        Goal(cells=cells, measure=f"transaction_commit_{quantile}_ms", at_most=1.0)
        for cells in ("transactions", "replication/transactions")
        for quantile in ("p50", "p99")
    ),
    Goal(cells="tiny/*", measure="requests_per_s", at_least=2.0),
    Goal(cells="tiny/1", measure="broker_cpu_us_per_request", at_most=0.35),
    *(Goal(cells=f"tiny/{depth}", measure="broker_cpu_us_per_request", at_most=0.5) for depth in (5, 50)),
    *(
        Goal(cells=cells, measure=f"{what}_ms", at_most=at_most)
        for cells, most in (("single", 1.0), ("replication/single", 0.5))
        for what, at_most in (
            ("acknowledged_p50", 1.0),
            ("acknowledged_p99", most),
            ("end_to_end_p50", 1.0),
            ("end_to_end_p99", 1.0),
        )
    ),
    Goal(cells="quorum/commits", measure="commit_p50_in_syncs", at_most=2.0, is_ratio=False),
    *(
        goal
        for load, records, cpu in (("stream", 1.3, 0.7), ("prepared", 2.0, 0.45))
        for goal in (
            Goal(cells=f"replication/{load}/*", measure="produce_records_per_s", at_least=records),
            Goal(cells=f"replication/{load}/*", measure="produce_broker_cpu_s_per_gb", at_most=cpu),
        )
    ),
    Goal(cells="replication/idempotent/*", measure="requests_per_s", at_least=2.0),
    Goal(cells="replication/partitions/*", measure="serving_s", at_most=0.2),
    Goal(cells="replication/partitions/*", measure="idle_cpu_percent", at_most=10.0, is_ratio=False),
    Goal(cells="replication/partitions/*", measure="partitions_failover_s", at_most=3.0, is_ratio=False),
    Goal(cells="replication/failover/*", measure="leader_kill_gap_median_ms", at_most=500.0, is_ratio=False),
    Goal(cells="replication/failover/*", measure="controller_kill_gap_median_ms", at_most=500.0, is_ratio=False),
    Goal(cells="replication/failover/defaults", measure="leader_kill_gap_median_ms", at_most=0.1),
    Goal(cells="replication/failover/defaults", measure="controller_kill_gap_median_ms", at_most=0.1),
    Goal(cells="replication/failover/*", measure="leader_stop_gap_median_ms", at_most=0.5),
    Goal(cells="replication/failover/*", measure="leader_stop_gap_worst_ms", at_most=500.0, is_ratio=False),
    *(
        Goal(
            cells="replication/failover/clients/*",
            measure=f"client_{name}_gap_{which}_ms",
            at_most=at_most,
            is_ratio=False,
        )
        for name in ("write", "write_alone", "commit")
        for which, at_most in (("median", 300.0), ("worst", 600.0))
    ),
    Goal(cells="groups/commits/*", measure="requests_per_s", at_least=1.0),
    Goal(cells="groups/commits/*", measure="broker_cpu_us_per_request", at_most=0.5),
    *(
        Goal(cells=f"groups/{protocol}", measure=measure, at_most=1.0)
        for protocol in ("classic", "consumer")
        for measure in ("group_formed_s", "group_join_median_ms", "group_kill_median_ms", "groups_failover_s")
    ),
    *(
        Goal(cells="cold-reader/*", measure=f"{name}_p99_ratio", at_most=2.0, is_ratio=False)
        for name in ("acknowledged", "end_to_end")
    ),
    Goal(cells="partitions/10000/*", measure="restart_s", at_most=5.0, is_ratio=False),
    Goal(cells="partitions/10000/*", measure="kill_restart_s", at_most=15.0, is_ratio=False),
    Goal(cells="partitions/10000/*", measure="loaded_mib", at_most=600.0, is_ratio=False),
    *(
        Goal(cells="groups/load", measure=f"{name}_load_ms", at_most=1_000.0, is_ratio=False)
        for name in ("offsets", "transactions")
    ),
    Goal(cells="testing", measure="testing_first_s", at_most=1.5, is_ratio=False),
    Goal(cells="testing", measure="testing_next_median_ms", at_most=100.0, is_ratio=False),
    Goal(cells="crowd/http/*", measure="beside_p99_ratio", at_most=1.5, is_ratio=False),
    *(
        Goal(cells=f"http/{what}", measure="turn_ms_median", at_most=20.0, is_ratio=False)
        for what in ("exposition", "listing")
    ),
    Goal(cells="large-answers", measure="turn_ms_median", at_most=20.0, is_ratio=False),
    Goal(cells="http/scraping", measure="scraping_cpu_ratio", at_most=1.02, is_ratio=False),
    Goal(cells="quorum/failover", measure="kill_failover_median_ms", at_most=300.0, is_ratio=False),
    Goal(cells="quorum/failover", measure="kill_failover_worst_ms", at_most=500.0, is_ratio=False),
    Goal(cells="quorum/failover", measure="pause_failover_worst_ms", at_most=1_500.0, is_ratio=False),
    Goal(cells="quorum/topic", measure="create_slowest_ms", at_most=50.0, is_ratio=False),
    Goal(cells="quorum/image", measure="snapshot_slowest_ms", at_most=50.0, is_ratio=False),
    *(Goal(cells=f"quorum/{how}", measure="elections", at_most=0.0, is_ratio=False) for how in ("idle", "busy")),
    *(
        Goal(cells=cells, measure=f"{verb}_records_per_s", at_least=1_000_000, is_ratio=False)
        for cells in ("stream/100B/default/6", "prepared/100B")
        for verb in ("produce", "consume")
    ),
)


def goals_of(cell: str, measure: str) -> tuple[Goal, ...]:
    """The goals that a value of a cell is held to."""
    return tuple(goal for goal in GOALS if goal.measure == measure and fnmatchcase(cell, goal.cells))
