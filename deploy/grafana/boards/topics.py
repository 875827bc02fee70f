"""Topics: records, bytes and what is refused."""

from typing import Final

from .expressions import ONE, TOPICS, most, rate, total
from .panel import Dashboard, Panel

CHOSEN: Final = ONE + ',topic=~"$topic",topic!=""'

DASHBOARD: Final = Dashboard(
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
)
