"""Expressions of PromQL that panels ask; the labels of every one choose the clusters and nodes that are shown."""

from typing import Final

# Of every query; `$instance` is all nodes unless some are chosen.
ALL: Final = 'job="penstock",cluster=~"$cluster"'
ONE: Final = ALL + ',instance=~"$instance"'
# Prometheus takes at least four samples for it.
RATE: Final = "[$__rate_interval]"
TOPICS: Final = "kafka_server_brokertopicmetrics_"
CONTROLLER: Final = "kafka_controller_kafkacontroller_"
REPLICAS: Final = "kafka_server_replicamanager_"
REQUESTS: Final = "kafka_network_requestmetrics_"
RAFT: Final = "kafka_server_raftmetrics_"
SLOWEST: Final = ONE + ',quantile="0.99"'


def rate(metric: str, by: str = "", where: str = ONE) -> str:
    """Per second, summed by labels."""
    return f"sum{f' by ({by})' if by else ''} (rate({metric}{{{where}}}{RATE}))"


def total(metric: str, by: str = "", where: str = ONE) -> str:
    return f"sum{f' by ({by})' if by else ''} ({metric}{{{where}}})"


def most(metric: str, by: str = "", where: str = ONE) -> str:
    return f"max{f' by ({by})' if by else ''} ({metric}{{{where}}})"
