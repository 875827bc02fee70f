"""Quotas of clients."""

from __future__ import annotations

from typing import Final

from .metric import Metric

_LABELS: Final = ("resource", "user", "clientId")
"""The rules for quotas of the JMX exporter: the type of the MBean is a label."""


def _of_quota(attribute: str, kinds: str, help_text: str) -> Metric:
    return Metric(
        name="kafka_server_quota_" + attribute.replace("-", "_"),
        kind="gauge",
        labels=_LABELS,
        help=help_text,
        mbean=f"kafka.server:type={kinds} ({attribute})",
    )


BYTE_RATE: Final = _of_quota("byte-rate", "Produce|Fetch", "Bytes a second of those that share a quota.")
REQUEST_TIME: Final = _of_quota(
    "request-time", "Request", "Percent of a second that the event loop worked for those that share a quota."
)
MUTATION_RATE: Final = _of_quota(
    "mutation-rate", "ControllerMutation", "Partitions a second that those who share a quota created and deleted."
)
TOKENS: Final = _of_quota(
    "tokens",
    "ControllerMutation",
    "Partitions that those who share a quota may create or delete at once; negative while they must wait.",
)
THROTTLE_TIME: Final = _of_quota(
    "throttle-time",
    "Produce|Fetch|Request|ControllerMutation",
    "Average of the throttle times of the last minute, in milliseconds; 0 without any.",
)
