"""MBeans of Apache Kafka to names of Prometheus, as its JMX exporter with `kafka-2_0_0.yml` gives them.

| MBean and attribute                                | name                                              |
|----------------------------------------------------|---------------------------------------------------|
| `kafka.x:type=T,name=NPerSec`, Count               | `kafka_x_t_n_total`                               |
| `kafka.x:type=T,name=NPercent`, MeanRate           | `kafka_x_t_n_percent`                             |
| `kafka.x:type=T,name=N`, Value                     | `kafka_x_t_n`                                     |
| `kafka.coordinator.x:type=T,name=N`, Value         | `kafka_coordinator_x_t_n`                         |
| `kafka.x:type=T,name=N`, Count and percentiles     | `kafka_x_t_n_count`, `kafka_x_t_n{quantile="…"}`  |
| `kafka.x:type=T`, attribute `a-b` (no `name`)      | `kafka_x_t_a_b`                                   |

The last row is of the newer rules (`kafka-kraft-3_0_0.yml`, Strimzi's); the dashboards spell two of these types without
the underscores.
"""

from __future__ import annotations

import re
from typing import Final

COUNT: Final = "Count"
VALUE: Final = "Value"
MEAN_RATE: Final = "MeanRate"
PERCENTILES: Final = {
    "50thPercentile": "0.50",
    "75thPercentile": "0.75",
    "95thPercentile": "0.95",
    "98thPercentile": "0.98",
    "99thPercentile": "0.99",
    "999thPercentile": "0.999",
}
"""Attributes of Kafka's histograms, and their label `quantile`."""
RATE_SUFFIX: Final = "PerSec"
PERCENT_SUFFIX: Final = "Percent"
COORDINATOR_PREFIX: Final = "kafka.coordinator."
SQUEEZED_TYPES: Final = {"raft-metrics": "raftmetrics", "broker-metadata-metrics": "brokermetadatametrics"}
"""As in Strimzi's rules and dashboards."""
_UNSAFE: Final = re.compile(r"[^a-zA-Z0-9_]")


def exporter_name(mbean: str, attribute: str) -> str:
    """The name of an attribute of `kafka.domain:type=…,name=…`; of percentiles that of all, which have a label."""
    domain, _, keys = mbean.partition(":")
    properties = dict(key.split("=", 1) for key in keys.split(","))
    kind, name = properties["type"], properties.get("name")
    kind = SQUEEZED_TYPES.get(kind, kind)
    prefix = f"{domain}_{kind}_"
    if name is None:
        return _safe(prefix + attribute)
    # In this order: a gauge whose name ends with Percent keeps it, as the general rule stands before that of percents.
    if attribute == COUNT and not domain.startswith(COORDINATOR_PREFIX):
        # What is behind "PerSec" is no part of the name either.
        rate, found, _ = name.partition(RATE_SUFFIX)
        return _safe(f"{prefix}{rate}_total" if found else f"{prefix}{name}_count")
    if attribute == MEAN_RATE:
        return _safe(f"{prefix}{name.partition(PERCENT_SUFFIX)[0]}_percent")
    assert attribute in PERCENTILES or attribute == VALUE, f"{mbean} has no attribute {attribute} that is told"
    return _safe(prefix + name)


def _safe(name: str) -> str:
    return _UNSAFE.sub("_", name).lower()
