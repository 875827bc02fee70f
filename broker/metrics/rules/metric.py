"""What a metric is: its name, kind, labels and meaning; and what is read of it at one time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from ...timing.rules.duration_histogram import DurationHistogram, quantiles_s
from .exporter_names import COUNT, MEAN_RATE, PERCENTILES, VALUE, exporter_name

Kind: TypeAlias = Literal["counter", "gauge", "summary"]

QUANTILES: Final = tuple(PERCENTILES.values())
_QUANTILES: Final = tuple(map(float, QUANTILES))
MS_PER_S: Final = 1000.0


class Metric(Struct, frozen=True, kw_only=True, eq=False):
    """A definition; there is one of each name."""

    name: str
    """A counter's ends with `_total`."""
    kind: Kind
    labels: tuple[str, ...]
    help: str
    mbean: str = ""
    """Apache Kafka's, with the attribute; empty for those that it does not have."""


class Summary(NamedTuple):
    """A distribution: values in the order of `QUANTILES`."""

    quantiles: Sequence[float]
    number: int
    """Of values since start."""
    total: float


Value: TypeAlias = float | Summary
"""A summary's is a Summary, all others' a number."""


class Reading(NamedTuple):
    """Samples of one metric: label values, in the order of its labels, and the value."""

    metric: Metric
    samples: Sequence[tuple[tuple[str, ...], Value]]


def read(metric: Metric, value: Value) -> Reading:
    """Of a metric without labels."""
    return Reading(metric, (((), value),))


# Definitions of Kafka's, by the kind of attribute that is told.


def rate(mbean: str, help_text: str, *labels: str) -> Metric:
    """How many since start: a meter's Count."""
    return _of_kafka("counter", mbean, COUNT, help_text, labels)


def value(mbean: str, help_text: str, *labels: str) -> Metric:
    return _of_kafka("gauge", mbean, VALUE, help_text, labels)


def count(mbean: str, help_text: str, *labels: str) -> Metric:
    """A meter's Count where its name does not end with PerSec: the rules have it end with `_count`."""
    return _of_kafka("gauge", mbean, COUNT, help_text, labels)


def percent(mbean: str, help_text: str, *labels: str) -> Metric:
    """A part of 1, whatever it is called."""
    return _of_kafka("gauge", mbean, MEAN_RATE, help_text, labels)


def times(mbean: str, help_text: str, *labels: str) -> Metric:
    """A histogram's percentiles and Count."""
    return _of_kafka("summary", mbean, "50thPercentile", help_text, labels)


def attribute(mbean: str, name: str, help_text: str, *labels: str) -> Metric:
    """Of an MBean whose attributes are its metrics."""
    return _of_kafka("gauge", mbean, name, help_text, labels)


def attribute_count(mbean: str, name: str, help_text: str, *labels: str) -> Metric:
    """As `attribute`, for what only grows: its name ends with `-total`."""
    return _of_kafka("counter", mbean, name, help_text, labels)


def _of_kafka(kind: Kind, mbean: str, attribute_name: str, help_text: str, labels: tuple[str, ...]) -> Metric:
    shown = "percentiles, Count" if kind == "summary" else attribute_name
    return Metric(
        name=exporter_name(mbean, attribute_name),
        kind=kind,
        labels=labels,
        help=help_text,
        mbean=f"{mbean} ({shown})",
    )


# Definitions of ours.


def own(kind: Kind, name: str, help_text: str, *labels: str) -> Metric:
    return Metric(name=name, kind=kind, labels=labels, help=help_text)


def summary_of(histograms: Sequence[DurationHistogram], now_ms: int, *, unit: float = MS_PER_S) -> Summary:
    """Of one histogram, or of several of the same thing. `unit` is how many of the metric's make a second."""
    recent = [sum(counts) for counts in zip(*(one.recent(now_ms) for one in histograms), strict=True)]
    return Summary(
        tuple(unit * second for second in quantiles_s(recent, _QUANTILES)),
        sum(one.count for one in histograms),
        unit * sum(one.sum_s for one in histograms),
    )
