"""Jobs of the pipeline: how fast they are, how far behind, and what a batch spends its time with."""

from typing import Final

from .panel import Dashboard, Panel, stat

# Prometheus takes at least four samples for it.
_RATE: Final = "[$__rate_interval]"
_ONE: Final = 'pipeline=~"$pipeline",query=~"$query"'
_QUERY: Final = "pipeline, query"
_LEGEND: Final = "{{pipeline}} {{query}}"


def _pick(metric: str, how: str = "max", by: str = _QUERY, where: str = "") -> str:
    chosen = f"{_ONE},{where}" if where else _ONE
    return f"{how} by ({by}) (penstock_pipeline_{metric}{{{chosen}}})"


def _rate(metric: str, by: str = _QUERY, where: str = "") -> str:
    chosen = f"{_ONE},{where}" if where else _ONE
    return f"sum by ({by}) (rate(penstock_pipeline_{metric}{{{chosen}}}{_RATE}))"


def _group_rate(metric: str) -> str:
    return f'sum by (group) (rate(penstock_pipeline_{metric}{{pipeline=~"$pipeline"}}{_RATE}))'


DASHBOARD: Final = Dashboard(
    name="pipeline",
    title="Penstock: pipeline",
    has_nodes=False,
    variables=[("pipeline", "penstock_pipeline_running"), ("query", "penstock_pipeline_running")],
    rows=[
        (
            "Now",
            [
                stat("Queries that run", f"sum(penstock_pipeline_running{{{_ONE}}})"),
                stat("Queries that ended", f"count(penstock_pipeline_running{{{_ONE}}} == 0) or vector(0)", warn=1),
                stat("Failed runs", f"sum(penstock_pipeline_failures_total{{{_ONE}}})", bad=1),
                stat("Offsets behind", f"sum(penstock_pipeline_topic_lag_offsets{{{_ONE}}})"),
                stat("Rows handled", f"sum(penstock_pipeline_input_rows_total{{{_ONE}}})"),
                stat(
                    "Longest time without news",
                    f"max(time() - (penstock_pipeline_last_progress_timestamp_seconds{{{_ONE}}}"
                    f" and penstock_pipeline_running{{{_ONE}}} == 1))",
                    unit="s",
                    warn=60,
                    bad=600,
                ),
            ],
        ),
        (
            "Throughput and lag",
            [
                Panel(title="Rows read", unit="rowsps", queries=[(_rate("input_rows_total"), _LEGEND)]),
                Panel(
                    title="Rows that a batch handles in a second",
                    unit="rowsps",
                    queries=[(_pick("processed_rows_per_second"), _LEGEND)],
                    description="What the job could do; rows read are what it had to.",
                ),
                Panel(
                    title="Offsets behind, by topic",
                    queries=[(_pick("topic_lag_offsets", by=f"{_QUERY}, topic"), "{{query}} {{topic}}")],
                    description="As of the beginning of the newest batch.",
                ),
                Panel(
                    title="Offsets behind, the ten partitions that are furthest",
                    queries=[
                        (
                            f"topk(10, {_pick('lag_offsets', by='query, topic, partition')})",
                            "{{query}} {{topic}}-{{partition}}",
                        )
                    ],
                ),
            ],
        ),
        (
            "Batches",
            [
                Panel(
                    title="How long the newest batch took",
                    unit="s",
                    queries=[(_pick("batch_duration_seconds", where='phase="triggerExecution"'), _LEGEND)],
                ),
                Panel(
                    title="Where the time of batches goes",
                    unit="percentunit",
                    queries=[
                        (_rate("phase_seconds_total", by="phase", where='phase!="triggerExecution"'), "{{phase}}")
                    ],
                    is_stacked=True,
                    description="1 is one query that is always at work.",
                ),
                Panel(title="Committed batches", unit="ops", queries=[(_rate("batches_total"), _LEGEND)]),
                Panel(
                    title="Starts and failures of queries",
                    queries=[
                        (
                            f"sum by ({_QUERY}) (increase(penstock_pipeline_starts_total{{{_ONE}}}{_RATE}))",
                            "starts {{query}}",
                        ),
                        (
                            f"sum by ({_QUERY}) (increase(penstock_pipeline_failures_total{{{_ONE}}}{_RATE}))",
                            "failures {{query}}",
                        ),
                    ],
                ),
            ],
        ),
        (
            "State and event time",
            [
                Panel(
                    title="How far the watermark is behind the clock",
                    unit="s",
                    queries=[(f"time() - {_pick('watermark_timestamp_seconds')}", _LEGEND)],
                ),
                Panel(
                    title="Rows of state",
                    queries=[(_pick("state_rows", by="query, operator"), "{{query}} {{operator}}")],
                ),
                Panel(
                    title="Memory of state",
                    unit="bytes",
                    queries=[(_pick("state_memory_bytes", by="query, operator"), "{{query}} {{operator}}")],
                ),
                Panel(title="Rows that came too late", unit="rowsps", queries=[(_rate("late_rows_total"), _LEGEND)]),
                Panel(
                    title="Commits of progress to groups",
                    unit="ops",
                    queries=[
                        (_group_rate("group_commits_total"), "{{group}}"),
                        (_group_rate("group_commit_failures_total"), "failed {{group}}"),
                    ],
                ),
            ],
        ),
    ],
)
