"""Names of OpenTelemetry as Prometheus has them, by the rules of the OpenTelemetry specification."""

from __future__ import annotations

import re
from typing import Final

NAME_LENGTH_MAX: Final = 200
KAFKA_PREFIX: Final = "org_apache_kafka_"
"""What KIP-714 lets all names begin with."""
FOREIGN_PREFIX: Final = "client_"
"""Before names of a client's own, so that none is one of the node's."""
_TOTAL: Final = "_total"
_UNITS: Final = {
    "d": "days",
    "h": "hours",
    "min": "minutes",
    "s": "seconds",
    "ms": "milliseconds",
    "us": "microseconds",
    "ns": "nanoseconds",
    "By": "bytes",
    "KiBy": "kibibytes",
    "MiBy": "mebibytes",
    "GiBy": "gibibytes",
    "%": "percent",
}
_INVALID: Final = re.compile(r"[^a-zA-Z0-9]+")
_ANNOTATION: Final = re.compile(r"\{.*?\}")


def metric_name(name: str, unit: str, *, is_counter: bool) -> str | None:
    """The name of a family: `org.apache.kafka.producer.record.send` in records becomes
    `org_apache_kafka_producer_record_send_total` if it only grows. None for a name that is empty or too long.
    """
    if len(name) > NAME_LENGTH_MAX:
        return None
    plain = _INVALID.sub("_", name).strip("_")
    if not plain:
        return None
    plain = plain.removesuffix(_TOTAL) if is_counter else plain
    suffix = _unit(unit, is_counter=is_counter)
    if suffix and not plain.endswith(f"_{suffix}"):
        plain = f"{plain}_{suffix}"
    if not plain.startswith(KAFKA_PREFIX):
        plain = FOREIGN_PREFIX + plain
    return plain + _TOTAL if is_counter else plain


def label_name(name: str) -> str:
    plain = _INVALID.sub("_", name).strip("_") or "key"
    return f"key_{plain}" if plain[0].isdigit() else plain


def _unit(unit: str, *, is_counter: bool) -> str:
    if unit == "1":
        return "" if is_counter else "ratio"
    return _UNITS.get(_ANNOTATION.sub("", unit[:NAME_LENGTH_MAX]), "")
