"""Pushed metrics in OpenTelemetry's protobuf (MetricsData v1), as points of series.

Loaded with the first push that was asked for: the library takes 4 MiB. Sums and gauges are read, which is all that
clients of Kafka push; points of histograms and summaries are counted as dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from google.protobuf.message import DecodeError
from msgspec import Struct
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, MetricsData

from ....protocol.errors import CorruptData
from .client_series import CLIENT_LABELS, Labels, PushedPoint
from .prometheus_names import label_name, metric_name

if TYPE_CHECKING:
    from opentelemetry.proto.common.v1.common_pb2 import KeyValue
    from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, NumberDataPoint

POINTS_MAX: Final = 2_000
"""Of one push: more are not kept of a client."""
LABELS_MAX: Final = 8
ITEMS_MAX: Final = 10_000
"""Resources, scopes and metrics of one push: without a bound 1 MiB of empty ones costs half a second of CPU."""
LABEL_LENGTH_MAX: Final = 255
"""A topic's name fits."""


class Push(Struct, frozen=True, kw_only=True):
    """`dropped` points were not asked for, or are no series here."""

    points: tuple[PushedPoint, ...]
    dropped: int


def read_push(data: bytes | bytearray | memoryview, is_wanted: Callable[[str], bool]) -> Push:
    """Raises CorruptData, for more than ITEMS_MAX metrics as well.

    `is_wanted` is asked about the names as the client has them.
    """
    message = MetricsData()
    try:
        message.ParseFromString(bytes(data))
    except DecodeError as error:
        raise CorruptData(f"pushed metrics of {len(data)} bytes could not be read: {error}") from None
    points: list[PushedPoint] = []
    dropped = 0
    for metric in _metrics(message):
        kind = metric.WhichOneof("data")
        if kind not in ("gauge", "sum"):
            dropped += len(getattr(metric, kind).data_points) if kind else 0
            continue
        found = metric.gauge.data_points if kind == "gauge" else metric.sum.data_points
        is_counter = kind == "sum" and metric.sum.is_monotonic
        name = metric_name(metric.name, metric.unit, is_counter=is_counter) if is_wanted(metric.name) else None
        room = POINTS_MAX - len(points)
        if name is None or room <= 0:
            dropped += len(found)
            continue
        dropped += max(0, len(found) - room)
        is_delta = (
            kind == "sum" and metric.sum.aggregation_temporality == AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
        )
        for data_point in found[:room]:
            labels = _labels(data_point.attributes)
            if labels is None:
                dropped += 1
                continue
            points.append(
                PushedPoint(
                    name=name, labels=labels, is_counter=is_counter, is_delta=is_delta, value=_value(data_point)
                )
            )
    return Push(points=tuple(points), dropped=dropped)


def _metrics(message: MetricsData) -> Iterator[Metric]:
    item_count = 0
    for resource in message.resource_metrics:
        for scope in resource.scope_metrics:
            # Empty ones take two bytes each, and time as the others do.
            item_count += 1 + len(scope.metrics)
            _check_count(item_count)
            yield from scope.metrics
        item_count += 1
        _check_count(item_count)


def _check_count(item_count: int) -> None:
    if item_count > ITEMS_MAX:
        raise CorruptData(f"pushed metrics have more than {ITEMS_MAX} resources, scopes and metrics")


def _value(point: NumberDataPoint) -> float:
    return float(point.as_int) if point.WhichOneof("value") == "as_int" else point.as_double


def _labels(attributes: Sequence[KeyValue]) -> Labels | None:
    """None where there are too many, or one is too long: cut, they could be those of another series."""
    if len(attributes) > LABELS_MAX + len(CLIENT_LABELS):
        return None
    labels: dict[str, str] = {}
    for attribute in attributes:
        value = getattr(attribute.value, attribute.value.WhichOneof("value") or "string_value")
        text = value if isinstance(value, str) else str(value)
        if len(attribute.key) > LABEL_LENGTH_MAX or len(text) > LABEL_LENGTH_MAX:
            return None
        name = label_name(attribute.key)
        if name not in CLIENT_LABELS:
            labels[name] = text
        if len(labels) > LABELS_MAX:
            return None
    return tuple(sorted(labels.items()))
