"""Write docs/metrics.md from the definitions of the metrics (`make docs`)."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from penstock.broker.metrics.lag_reader import OFFSETS_MAX
from penstock.broker.metrics.lag_reader import PARTITIONS_MAX as LED_MAX
from penstock.broker.metrics.replica_reader import PARTITIONS_MAX
from penstock.broker.metrics.rules.absent_metrics import ABSENT
from penstock.broker.metrics.rules.catalog import catalog
from penstock.broker.metrics.rules.metric import Metric
from penstock.broker.metrics.topic_reader import TOPICS_MAX
from penstock.broker.network.rules.request_statistics import FEW_OF, MANY_PER_S, TIMED_PER_S
from penstock.broker.telemetry.rules.client_series import CLIENTS_MAX, SERIES_MAX, SERIES_PER_CLIENT_MAX

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = ROOT / "docs" / "metrics.md"
HEAD = f"""# Metrics

Written by `make docs` from `broker/metrics/rules/`.

Every node, broker or controller, tells its metrics in the text format of Prometheus, or in OpenMetrics where the Accept
header asks for it. Those that Apache Kafka has too have the names that the rules `kafka-2_0_0.yml` of Prometheus' JMX
exporter give its MBeans, so dashboards and alerts made for Kafka show Penstock; those of the quorum are spelled as
Strimzi's rules spell them. Metrics that Kafka does not have begin with `penstock_`.

- A metric with a label `topic` has a series without it: all topics together, deleted ones too. The first
  {TOPICS_MAX:,} topics
  of a node have series of their own; `penstock_metrics_hidden_topics` says how many others there are.
- Series of partitions are told only with `metrics.per.partition=true`, in the node's properties or as a dynamic config
  (`penstock config set brokers metrics.per.partition=true`), of at most
  {PARTITIONS_MAX:,} partitions.
- Offsets and lags of groups have the names of [kafka_exporter](https://github.com/danielqsj/kafka_exporter), and are
  told only with `metrics.kafka.exporter=true`, set likewise: of at most {OFFSETS_MAX:,} committed offsets and
  {LED_MAX:,} led partitions of a node. One node of the cluster tells each of these series (all brokers
  `kafka_brokers`), so sums over nodes are right. A coordinator asks leaders for high watermarks at most once a second.
- A summary's quantiles are of the last five minutes, and exact to an eighth. While an API has more than
  {MANY_PER_S} requests a second one of {FEW_OF} or more of them is timed (about {TIMED_PER_S} a second) and stands for
  all of these in `_count` and `_sum`; `kafka_network_requestmetrics_requests_total` counts all.
- Times in names of Kafka's are milliseconds, those of ours seconds.
- There is one event loop: the idle ratios of network and handlers are the same number.
- `process_*` and `python_*` are those of the Prometheus client for Python.
- A node that is not asked over HTTP has loaded nothing of this: `admin.listeners` costs it no memory that can be
  measured. The first request adds 15 MiB, the first exposition 1.4 MiB more. An exposition with series of 10,000
  partitions takes 0.26 s of CPU in turns of the event loop of at most 8 ms (November 2026, one core of an Intel Xeon).
- What clients push (KIP-714) is told with their names, for at most {CLIENTS_MAX:,} clients, {SERIES_PER_CLIENT_MAX}
  series of one and {SERIES_MAX:,} of all. Series go a minute after their client has disconnected, and earlier where
  others need the room.

"""


def main() -> None:
    """Write the page."""
    OUTPUT.write_text(render())
    sys.stdout.write(f"{OUTPUT.relative_to(ROOT)}\n")


def render() -> str:
    """The text of the page."""
    sections = ["".join(_section(title, metrics)) for title, metrics in catalog().items()]
    return HEAD + "\n".join((*sections, "".join(_absent())))


def _section(title: str, metrics: Sequence[Metric]) -> Iterator[str]:
    yield f"## {title}\n\n| metric | type | labels | meaning | of Kafka's |\n|---|---|---|---|---|\n"
    for metric in metrics:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        mbean = f"`{metric.mbean}`" if metric.mbean else ""
        yield f"| `{metric.name}` | {metric.kind} | {labels} | {metric.help} | {mbean} |\n"


def _absent() -> Iterator[str]:
    yield "## What Apache Kafka tells and Penstock does not\n\n"
    yield "Of the MBeans of a node of Apache Kafka 4.3.1; `*` stands for any text.\n\n"
    yield "| MBeans | why |\n|---|---|\n"
    for one in ABSENT:
        yield f"| {', '.join(f'`{mbean}`' for mbean in one.mbeans)} | {one.reason} |\n"


if __name__ == "__main__":
    main()
