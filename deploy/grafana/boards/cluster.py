"""The cluster as a whole: is it well, what flows through it, where its replicas are."""

from typing import Final

from .expressions import ALL, CONTROLLER, ONE, REPLICAS, TOPICS, most, rate, total
from .panel import Dashboard, Panel, stat

NO_TOPIC: Final = ONE + ',topic=""'

DASHBOARD: Final = Dashboard(
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
)
