"""Write docs/metrics.md from the definitions of the metrics (`make docs`)."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from penstock.broker.metrics.lag_reader import OFFSETS_MAX
from penstock.broker.metrics.lag_reader import PARTITIONS_MAX as LED_MAX
from penstock.broker.metrics.replica_reader import PARTITIONS_MAX
from penstock.broker.metrics.rules.catalog import catalog
from penstock.broker.metrics.rules.metric import Metric
from penstock.broker.metrics.topic_reader import TOPICS_MAX
from penstock.broker.network.rules.request_statistics import FEW_OF, MANY_PER_S, TIMED_PER_S

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

"""


def main() -> None:
    """Write the page."""
    OUTPUT.write_text(render())
    sys.stdout.write(f"{OUTPUT.relative_to(ROOT)}\n")


def render() -> str:
    """The text of the page."""
    return HEAD + "\n".join("".join(_section(title, metrics)) for title, metrics in catalog().items())


def _section(title: str, metrics: Sequence[Metric]) -> Iterator[str]:
    yield f"## {title}\n\n| metric | type | labels | meaning | of Kafka's |\n|---|---|---|---|---|\n"
    for metric in metrics:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        mbean = f"`{metric.mbean}`" if metric.mbean else ""
        yield f"| `{metric.name}` | {metric.kind} | {labels} | {metric.help} | {mbean} |\n"


if __name__ == "__main__":
    main()
