"""Write the Grafana dashboards (`make docs`): dashboards/*.json, checked in as they are loaded.

A dashboard is a list of rows, a row a list of panels, a panel its title, unit and queries. What the panels ask is in
docs/metrics.md. `$datasource`, `$cluster` and `$instance` are variables of every dashboard.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).resolve().parent / "dashboards"
WIDTH: Final = 24
HEIGHT: Final = 8
# Of every query; `$instance` is all nodes unless some are chosen.
ALL: Final = 'job="penstock",cluster=~"$cluster"'
ONE: Final = ALL + ',instance=~"$instance"'
# Prometheus takes at least four samples for it.
RATE: Final = "[$__rate_interval]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """`queries` are pairs of an expression and a legend. `kind` is Grafana's type of a panel."""

    title: str
    queries: Sequence[tuple[str, str]]
    unit: str = "short"
    kind: str = "timeseries"
    description: str = ""
    # From which value on it is worth a look, and from which bad.
    warn: float | None = None
    bad: float | None = None
    is_stacked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """`variables` are more labels to choose from: a name, and the metric that has it."""

    name: str
    title: str
    rows: Sequence[tuple[str, Sequence[Panel]]]
    variables: Sequence[tuple[str, str]] = field(default_factory=tuple)


def rate(metric: str, by: str = "", where: str = ONE) -> str:
    """Per second, summed by labels."""
    return f"sum{f' by ({by})' if by else ''} (rate({metric}{{{where}}}{RATE}))"


def total(metric: str, by: str = "", where: str = ONE) -> str:
    return f"sum{f' by ({by})' if by else ''} ({metric}{{{where}}})"


def most(metric: str, by: str = "", where: str = ONE) -> str:
    return f"max{f' by ({by})' if by else ''} ({metric}{{{where}}})"


def stat(
    title: str, expression: str, *, unit: str = "short", warn: float | None = None, bad: float | None = None
) -> Panel:
    return Panel(title=title, queries=[(expression, "")], unit=unit, kind="stat", warn=warn, bad=bad)


TOPICS: Final = "kafka_server_brokertopicmetrics_"
CONTROLLER: Final = "kafka_controller_kafkacontroller_"
REPLICAS: Final = "kafka_server_replicamanager_"
REQUESTS: Final = "kafka_network_requestmetrics_"
RAFT: Final = "kafka_server_raftmetrics_"
APPLIED: Final = "kafka_server_brokermetadatametrics_last_applied_record_offset"
BEHIND: Final = f"scalar({most(RAFT + 'high_watermark', where=ALL)}) - 1 - {most(APPLIED, 'instance')}"
GROUPS: Final = "kafka_server_group_coordinator_metrics_"
NO_TOPIC: Final = ONE + ',topic=""'
CHOSEN: Final = ONE + ',topic=~"$topic",topic!=""'
SLOWEST: Final = ONE + ',quantile="0.99"'

DASHBOARDS: Final = (
    Dashboard(
        name="cluster",
        title="Penstock: cluster",
        rows=[
            (
                "Is it well?",
                [
                    stat("Nodes up", f"sum(up{{{ALL}}})"),
                    stat("Brokers active", most(CONTROLLER + "activebrokercount", where=ALL)),
                    stat("Brokers fenced", most(CONTROLLER + "fencedbrokercount", where=ALL), bad=1),
                    stat("Active controllers", total(CONTROLLER + "activecontrollercount", where=ALL)),
                    stat("Partitions without a leader", most(CONTROLLER + "offlinepartitionscount", where=ALL), bad=1),
                    stat("Under min ISR", total(REPLICAS + "underminisrpartitioncount", where=ALL), bad=1),
                    stat("Under-replicated", total(REPLICAS + "underreplicatedpartitions", where=ALL), warn=1),
                    stat(
                        "Log directories offline",
                        total("kafka_log_logmanager_offlinelogdirectorycount", where=ALL),
                        bad=1,
                    ),
                ],
            ),
            (
                "Records",
                [
                    Panel(
                        title="Records in",
                        unit="wps",
                        queries=[(rate(TOPICS + "messagesin_total", "instance", NO_TOPIC), "{{instance}}")],
                        is_stacked=True,
                    ),
                    Panel(
                        title="Bytes in",
                        unit="Bps",
                        queries=[(rate(TOPICS + "bytesin_total", "instance", NO_TOPIC), "{{instance}}")],
                        is_stacked=True,
                    ),
                    Panel(
                        title="Bytes out to consumers",
                        unit="Bps",
                        queries=[(rate(TOPICS + "bytesout_total", "instance", NO_TOPIC), "{{instance}}")],
                        is_stacked=True,
                    ),
                    Panel(
                        title="Bytes replicated",
                        unit="Bps",
                        queries=[(rate(TOPICS + "replicationbytesin_total", "instance"), "{{instance}}")],
                        is_stacked=True,
                    ),
                ],
            ),
            (
                "Replicas",
                [
                    Panel(
                        title="Leaders",
                        queries=[(total(REPLICAS + "leadercount", "instance"), "{{instance}}")],
                        is_stacked=True,
                    ),
                    Panel(
                        title="Replicas",
                        queries=[(total(REPLICAS + "partitioncount", "instance"), "{{instance}}")],
                        is_stacked=True,
                    ),
                    Panel(
                        title="ISR shrinks and expansions",
                        unit="ops",
                        queries=[
                            (rate(REPLICAS + "isrshrinks_total"), "shrinks"),
                            (rate(REPLICAS + "isrexpands_total"), "expansions"),
                        ],
                    ),
                    Panel(
                        title="Records that followers lack",
                        queries=[(most("penstock_fetcher_max_lag", "instance"), "{{instance}}")],
                    ),
                ],
            ),
            (
                "Size",
                [
                    Panel(
                        title="Topics and partitions",
                        queries=[
                            (most(CONTROLLER + "globaltopiccount", where=ALL), "topics"),
                            (most(CONTROLLER + "globalpartitioncount", where=ALL), "partitions"),
                        ],
                    ),
                    Panel(
                        title="Free bytes of log directories",
                        unit="bytes",
                        queries=[
                            (
                                most("penstock_log_directory_free_bytes", "instance, logDirectory"),
                                "{{instance}} {{logDirectory}}",
                            )
                        ],
                    ),
                    Panel(
                        title="Connections",
                        queries=[
                            (total("kafka_server_socket_server_metrics_connection_count", "instance"), "{{instance}}")
                        ],
                    ),
                    Panel(
                        title="Not led by the preferred replica",
                        queries=[(most(CONTROLLER + "preferredreplicaimbalancecount", where=ALL), "partitions")],
                    ),
                ],
            ),
        ],
    ),
    Dashboard(
        name="node",
        title="Penstock: node",
        rows=[
            (
                "The process",
                [
                    Panel(
                        title="CPU",
                        unit="percentunit",
                        queries=[(rate("process_cpu_seconds_total", "instance"), "{{instance}}")],
                    ),
                    Panel(
                        title="Resident memory",
                        unit="bytes",
                        queries=[(most("process_resident_memory_bytes", "instance"), "{{instance}}")],
                    ),
                    Panel(title="Open files", queries=[(most("process_open_fds", "instance"), "{{instance}}")]),
                    Panel(
                        title="Idle",
                        unit="percentunit",
                        queries=[
                            (
                                most("kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent", "instance"),
                                "{{instance}}",
                            )
                        ],
                    ),
                ],
            ),
            (
                "The event loop",
                [
                    Panel(
                        title="How late it is (99th percentile)",
                        unit="s",
                        queries=[(most("penstock_loop_lag_seconds", "instance", SLOWEST), "{{instance}}")],
                        warn=0.1,
                    ),
                    Panel(
                        title="The latest call",
                        unit="s",
                        queries=[(most("penstock_loop_lag_max_seconds", "instance"), "{{instance}}")],
                    ),
                    Panel(
                        title="Length of a turn (99th percentile)",
                        unit="s",
                        queries=[(most("penstock_loop_turn_seconds", "instance", SLOWEST), "{{instance}}")],
                    ),
                    Panel(
                        title="Pauses of garbage collection",
                        unit="s",
                        queries=[(most("penstock_garbage_collection_max_seconds", "instance"), "{{instance}} longest")],
                    ),
                ],
            ),
            (
                "Requests",
                [
                    Panel(
                        title="Requests",
                        unit="reqps",
                        queries=[(rate(REQUESTS + "requests_total", "request"), "{{request}}")],
                        is_stacked=True,
                    ),
                    Panel(
                        title="Errors",
                        unit="ops",
                        queries=[(rate(REQUESTS + "errors_total", "request, error"), "{{request}} {{error}}")],
                    ),
                    Panel(
                        title="Produce (quantiles)",
                        unit="ms",
                        queries=[
                            (most(REQUESTS + "totaltimems", "quantile", ONE + ',request="Produce"'), "{{quantile}}")
                        ],
                    ),
                    Panel(
                        title="Fetch of consumers (quantiles)",
                        unit="ms",
                        queries=[
                            (
                                most(REQUESTS + "totaltimems", "quantile", ONE + ',request=~"FetchConsumer|Fetch"'),
                                "{{quantile}}",
                            )
                        ],
                    ),
                    Panel(
                        title="Where the time of Produce goes (99th percentile)",
                        unit="ms",
                        queries=[
                            (most(REQUESTS + part, where=ONE + ',request="Produce",quantile="0.99"'), name)
                            for part, name in (
                                ("requestqueuetimems", "queue"),
                                ("localtimems", "handler"),
                                ("remotetimems", "followers and disk"),
                                ("responsesendtimems", "send"),
                            )
                        ],
                    ),
                    Panel(
                        title="Requests that wait",
                        queries=[
                            (
                                total("kafka_server_delayedoperationpurgatory_purgatorysize", "delayedOperation"),
                                "{{delayedOperation}}",
                            )
                        ],
                    ),
                    Panel(
                        title="Syncs of logs (quantiles)",
                        unit="ms",
                        queries=[(most("kafka_log_logflushstats_logflushrateandtimems", "quantile"), "{{quantile}}")],
                    ),
                    Panel(
                        title="Memory of unfinished requests",
                        unit="bytes",
                        queries=[(total("kafka_network_socketserver_memorypoolused", "instance"), "{{instance}}")],
                    ),
                ],
            ),
        ],
    ),
    Dashboard(
        name="topics",
        title="Penstock: topics",
        variables=[("topic", TOPICS + "messagesin_total")],
        rows=[
            (
                "By topic",
                [
                    Panel(
                        title="Records in",
                        unit="wps",
                        queries=[(rate(TOPICS + "messagesin_total", "topic", CHOSEN), "{{topic}}")],
                    ),
                    Panel(
                        title="Bytes in",
                        unit="Bps",
                        queries=[(rate(TOPICS + "bytesin_total", "topic", CHOSEN), "{{topic}}")],
                    ),
                    Panel(
                        title="Bytes out",
                        unit="Bps",
                        queries=[(rate(TOPICS + "bytesout_total", "topic", CHOSEN), "{{topic}}")],
                    ),
                    Panel(
                        title="Batches to append",
                        unit="ops",
                        queries=[(rate(TOPICS + "totalproducerequests_total", "topic", CHOSEN), "{{topic}}")],
                    ),
                    Panel(
                        title="Reads",
                        unit="ops",
                        queries=[(rate(TOPICS + "totalfetchrequests_total", "topic", CHOSEN), "{{topic}}")],
                    ),
                    Panel(
                        title="Refused and failed",
                        unit="ops",
                        queries=[
                            (rate(TOPICS + "failedproducerequests_total", "topic", CHOSEN), "{{topic}} produce"),
                            (rate(TOPICS + "failedfetchrequests_total", "topic", CHOSEN), "{{topic}} fetch"),
                            (rate(TOPICS + "bytesrejected_total", "topic", CHOSEN), "{{topic}} rejected bytes"),
                        ],
                    ),
                ],
            ),
            (
                "By partition (metrics.per.partition=true)",
                [
                    Panel(
                        title="Size of a topic, all replicas",
                        unit="bytes",
                        queries=[(total("kafka_log_log_size", "topic", CHOSEN), "{{topic}}")],
                    ),
                    Panel(
                        title="Next offset",
                        queries=[
                            (most("kafka_log_log_logendoffset", "topic, partition", CHOSEN), "{{topic}}-{{partition}}")
                        ],
                    ),
                    Panel(
                        title="Segments",
                        queries=[(total("kafka_log_log_numlogsegments", "topic", CHOSEN), "{{topic}}")],
                    ),
                    Panel(
                        title="Replicas in sync",
                        queries=[
                            (
                                most("kafka_cluster_partition_insyncreplicascount", "topic, partition", CHOSEN),
                                "{{topic}}-{{partition}}",
                            )
                        ],
                    ),
                ],
            ),
        ],
    ),
    Dashboard(
        name="groups",
        title="Penstock: groups and transactions",
        rows=[
            (
                "Groups",
                [
                    Panel(
                        title="Groups by protocol",
                        queries=[(total(GROUPS + "group_count", "protocol"), "{{protocol}}")],
                    ),
                    Panel(
                        title="Classic groups by state",
                        queries=[(total(GROUPS + "classic_group_count", "state"), "{{state}}")],
                    ),
                    Panel(
                        title="Consumer groups by state",
                        queries=[(total(GROUPS + "consumer_group_count", "state"), "{{state}}")],
                    ),
                    Panel(title="Members", queries=[(total("penstock_group_members", "protocol"), "{{protocol}}")]),
                    Panel(
                        title="Commits of offsets",
                        unit="ops",
                        queries=[(rate(GROUPS + "offset_commit_count", "instance"), "{{instance}}")],
                    ),
                    Panel(
                        title="Completed rebalances",
                        unit="ops",
                        queries=[(rate(GROUPS + "group_completed_rebalance_count", "instance"), "{{instance}}")],
                    ),
                    Panel(
                        title="Committed offsets that are kept",
                        queries=[
                            (
                                total("kafka_coordinator_group_groupmetadatamanager_numoffsets", "instance"),
                                "{{instance}}",
                            )
                        ],
                    ),
                    Panel(
                        title="Coordinators by state",
                        queries=[(total(GROUPS + "num_partitions", "state"), "{{state}}")],
                    ),
                ],
            ),
            (
                "Transactions",
                [
                    Panel(
                        title="Transactional ids by state",
                        queries=[(total("penstock_transactional_ids", "state"), "{{state}}")],
                    ),
                    Panel(
                        title="Coordinators",
                        queries=[(total("penstock_transaction_coordinators", "instance"), "{{instance}}")],
                    ),
                    Panel(
                        title="EndTxn (quantiles)",
                        unit="ms",
                        queries=[
                            (most(REQUESTS + "totaltimems", "quantile", ONE + ',request="EndTxn"'), "{{quantile}}")
                        ],
                    ),
                    Panel(
                        title="Producer ids that logs remember",
                        queries=[(total(REPLICAS + "produceridcount", "instance"), "{{instance}}")],
                    ),
                ],
            ),
        ],
    ),
    Dashboard(
        name="quorum",
        title="Penstock: metadata quorum",
        rows=[
            (
                "Who leads",
                [
                    stat("Leader", most(RAFT + "current_leader", where=ALL)),
                    stat("Epoch", most(RAFT + "current_epoch", where=ALL)),
                    stat("Voters", most(RAFT + "number_of_voters", where=ALL)),
                    stat("Observers", most(RAFT + "number_of_observers", where=ALL)),
                    stat(
                        "Voters without a connection",
                        most(RAFT + "number_unknown_voter_connections", where=ALL),
                        warn=1,
                    ),
                    Panel(
                        title="Role of each node",
                        kind="state-timeline",
                        queries=[
                            (
                                f"({total(RAFT + 'current_state', 'instance, current_state')}) == 1",
                                "{{instance}} {{current_state}}",
                            )
                        ],
                    ),
                    Panel(title="Epoch", queries=[(most(RAFT + "current_epoch", "instance"), "{{instance}}")]),
                ],
            ),
            (
                "The log",
                [
                    Panel(
                        title="End of the log", queries=[(most(RAFT + "log_end_offset", "instance"), "{{instance}}")]
                    ),
                    Panel(
                        title="Metadata records that nodes lack",
                        queries=[
                            (
                                BEHIND,
                                "{{instance}}",
                            )
                        ],
                    ),
                    Panel(
                        title="Proposal to commit",
                        unit="ms",
                        queries=[
                            (most(RAFT + "commit_latency_avg", "instance"), "{{instance}} average"),
                            (most(RAFT + "commit_latency_max", "instance"), "{{instance}} longest"),
                        ],
                    ),
                    Panel(
                        title="Elections",
                        unit="ms",
                        queries=[
                            (most(RAFT + "election_latency_avg", "instance"), "{{instance}} average"),
                            (most(RAFT + "election_latency_max", "instance"), "{{instance}} longest"),
                        ],
                    ),
                    Panel(
                        title="Records appended",
                        unit="ops",
                        queries=[(most(RAFT + "append_records_rate", "instance"), "{{instance}}")],
                    ),
                    Panel(
                        title="Changes of the active controller",
                        queries=[(most(CONTROLLER + "newactivecontrollerscount", "instance"), "{{instance}}")],
                    ),
                    Panel(
                        title="Brokers fenced early",
                        queries=[
                            (total("penstock_fast_fencings_total", "instance"), "{{instance}}"),
                            (total("penstock_fast_fencings_wrong_total", "instance"), "{{instance}} that were alive"),
                        ],
                    ),
                    Panel(
                        title="Sessions of brokers that timed out",
                        queries=[(total(CONTROLLER + "timedoutbrokerheartbeatcount", "instance"), "{{instance}}")],
                    ),
                ],
            ),
        ],
    ),
    Dashboard(
        name="clients",
        title="Penstock: clients",
        rows=[
            (
                "Connections",
                [
                    Panel(
                        title="Open",
                        queries=[
                            (
                                total("kafka_server_socket_server_metrics_connection_count", "instance, listener"),
                                "{{instance}} {{listener}}",
                            )
                        ],
                    ),
                    Panel(
                        title="Open, by client software",
                        queries=[
                            (
                                total(
                                    "kafka_server_socket_server_metrics_connections",
                                    "clientSoftwareName, clientSoftwareVersion",
                                ),
                                "{{clientSoftwareName}} {{clientSoftwareVersion}}",
                            )
                        ],
                    ),
                    Panel(
                        title="Opened and closed",
                        unit="ops",
                        queries=[
                            (rate("kafka_server_socket_server_metrics_connection_creation_total"), "opened"),
                            (rate("kafka_server_socket_server_metrics_connection_close_total"), "closed"),
                        ],
                    ),
                    Panel(
                        title="Refused, failed, idle for too long",
                        unit="ops",
                        queries=[
                            (rate("penstock_connections_refused_total"), "refused"),
                            (rate("penstock_connections_failed_total"), "failed"),
                            (rate("kafka_network_socketserver_expiredconnectionskilledcount"), "idle"),
                        ],
                    ),
                    Panel(
                        title="Bytes",
                        unit="Bps",
                        queries=[
                            (rate("penstock_network_bytes_in_total"), "in"),
                            (rate("penstock_network_bytes_out_total"), "out"),
                        ],
                    ),
                ],
            ),
            (
                "What they ask",
                [
                    Panel(
                        title="Requests by API and version",
                        unit="reqps",
                        queries=[
                            (
                                f"topk(20, {rate(REQUESTS + 'requests_total', 'request, version')})",
                                "{{request}} v{{version}}",
                            )
                        ],
                    ),
                    Panel(
                        title="Errors that they are told",
                        unit="ops",
                        queries=[(f"topk(20, {rate(REQUESTS + 'errors_total', 'error')})", "{{error}}")],
                    ),
                    Panel(
                        title="Slowest requests (99th percentile)",
                        unit="ms",
                        queries=[
                            (
                                f"topk(10, {most(REQUESTS + 'totaltimems', 'request', SLOWEST)})",
                                "{{request}}",
                            )
                        ],
                    ),
                    Panel(
                        title="Fetch sessions",
                        queries=[
                            (
                                total("kafka_server_fetchsessioncache_numincrementalfetchsessions", "instance"),
                                "{{instance}}",
                            )
                        ],
                    ),
                ],
            ),
        ],
    ),
)


def main() -> None:
    """Write all of them."""
    for dashboard in DASHBOARDS:
        path = FOLDER / f"{dashboard.name}.json"
        path.write_text(render(dashboard))
        sys.stdout.write(f"deploy/grafana/dashboards/{path.name}\n")


def render(dashboard: Dashboard) -> str:
    """The text of one."""
    return json.dumps(_dashboard(dashboard), indent=1, ensure_ascii=False) + "\n"


def _dashboard(dashboard: Dashboard) -> dict[str, Any]:
    panels: list[dict[str, Any]] = []
    top = 0
    for title, row in dashboard.rows:
        panels.append(
            {
                "type": "row",
                "title": title,
                "collapsed": False,
                "gridPos": {"x": 0, "y": top, "w": WIDTH, "h": 1},
                "panels": [],
            }
        )
        top += 1
        left, tallest = 0, 0
        for panel in row:
            width, height = (3, 4) if panel.kind == "stat" else (6, HEIGHT)
            if left + width > WIDTH:
                left, top = 0, top + tallest
                tallest = 0
            panels.append(_panel(panel, left, top, width, height))
            left, tallest = left + width, max(tallest, height)
        top += tallest
    for number, panel_json in enumerate(panels, start=1):
        panel_json["id"] = number
    return {
        "uid": f"penstock-{dashboard.name}",
        "title": dashboard.title,
        "tags": ["penstock"],
        "timezone": "browser",
        "schemaVersion": 39,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "graphTooltip": 1,
        "links": [
            {
                "type": "dashboards",
                "tags": ["penstock"],
                "asDropdown": True,
                "title": "Penstock",
                "includeVars": True,
                "keepTime": True,
            }
        ],
        "templating": {"list": _variables(dashboard)},
        "annotations": {"list": [_elections()]},
        "panels": panels,
    }


def _variables(dashboard: Dashboard) -> list[dict[str, Any]]:
    chosen = [
        {"name": "datasource", "label": "Source", "type": "datasource", "query": "prometheus", "current": {}},
        _variable("cluster", 'label_values(up{job="penstock"}, cluster)'),
        _variable("instance", 'label_values(up{job="penstock",cluster=~"$cluster"}, instance)'),
    ]
    chosen += [
        _variable(name, f'label_values({metric}{{{ONE},{name}!=""}}, {name})') for name, metric in dashboard.variables
    ]
    return chosen


def _variable(name: str, query: str) -> dict[str, Any]:
    return {
        "name": name,
        "label": name.capitalize(),
        "type": "query",
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        # Also what has no such label.
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def _elections() -> dict[str, Any]:
    """A mark wherever another controller became active."""
    return {
        "name": "Active controller",
        "enable": True,
        "iconColor": "orange",
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "expr": f"max(changes({RAFT}current_leader{{{ALL}}}[1m])) > 0",
        "titleFormat": "Another node leads the metadata quorum",
    }


def _panel(panel: Panel, left: int, top: int, width: int, height: int) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"color": "green" if panel.warn or panel.bad else "text", "value": None}]
    steps += [{"color": "orange", "value": panel.warn}] if panel.warn is not None else []
    steps += [{"color": "red", "value": panel.bad}] if panel.bad is not None else []
    custom = {"fillOpacity": 30 if panel.is_stacked else 8, "lineWidth": 1, "showPoints": "never"}
    if panel.is_stacked:
        custom["stacking"] = {"mode": "normal"}
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "gridPos": {"x": left, "y": top, "w": width, "h": height},
        "fieldConfig": {
            "defaults": {
                "unit": panel.unit,
                "min": 0 if panel.kind == "timeseries" else None,
                "custom": custom if panel.kind == "timeseries" else {},
                "thresholds": {"mode": "absolute", "steps": steps},
            },
            "overrides": [],
        },
        "options": _options(panel.kind),
        "targets": [
            {
                "refId": chr(65 + index),
                "expr": expression,
                "legendFormat": legend or "__auto",
                "datasource": {"type": "prometheus", "uid": "${datasource}"},
            }
            for index, (expression, legend) in enumerate(panel.queries)
        ],
    }


def _options(kind: str) -> dict[str, Any]:
    if kind == "stat":
        return {
            "reduceOptions": {"calcs": ["lastNotNull"]},
            "colorMode": "value",
            "graphMode": "none",
            "textMode": "value",
        }
    if kind == "state-timeline":
        return {"showValue": "never", "mergeValues": True}
    return {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi", "sort": "desc"}}


if __name__ == "__main__":
    main()
