"""Single nodes: process, event loop, and where the time of requests goes."""

from typing import Final

from .expressions import ONE, REQUESTS, SLOWEST, most, rate, total
from .panel import Dashboard, Panel

DASHBOARD: Final = Dashboard(
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
                    queries=[(most(REQUESTS + "totaltimems", "quantile", ONE + ',request="Produce"'), "{{quantile}}")],
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
)
