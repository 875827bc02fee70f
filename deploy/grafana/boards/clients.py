"""Clients: their connections and what they ask."""

from typing import Final

from .expressions import REQUESTS, SLOWEST, most, rate, total
from .panel import Dashboard, Panel

DASHBOARD: Final = Dashboard(
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
                        (rate("penstock_connections_idle_closed_total"), "idle"),
                        (rate("kafka_network_socketserver_expiredconnectionskilledcount"), "session ended"),
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
)
