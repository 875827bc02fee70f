"""Metrics as Prometheus reads them: its text format, or OpenMetrics where that is asked for.

The library makes the text, names, types and escaping, of a few samples at a time: in between other requests have their
turn. It is loaded with the first exposition.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Final

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.samples import Sample

from .rules.metric import QUANTILES, Metric, Summary, Value
from .rules.readings import Reader

SAMPLES_PER_TURN: Final = 500
"""Made text of in one turn of the event loop: a few milliseconds."""
_COUNTER_SUFFIX: Final = "_total"
_COMMENT: Final = b"#"


class _OneFamily:
    """What the library makes text of."""

    def __init__(self, family: Family) -> None:
        self._family = family

    def collect(self) -> Iterable[Family]:
        return (self._family,)


def process_collector() -> Callable[[], Iterable[Family]]:
    """Metrics of the process and of Python, as the library has them. It reads files: to be called in the executor."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return lambda: list(registry.collect())


async def expose(
    readers: Sequence[Reader],
    sources: Sequence[Callable[[], Iterable[Family]]],
    process: Callable[[], Iterable[Family]],
    accept: str | None,
) -> tuple[bytes, str]:
    """Returns the text and its content type. `sources` yield families of the library."""
    encode, content_type = choose_encoder(accept or "")
    parts: list[bytes] = []
    async for family in _families(readers, sources, process):
        for number, start in enumerate(range(0, max(1, len(family.samples)), SAMPLES_PER_TURN)):
            some = Family(family.name, family.documentation, family.type, family.unit)
            some.samples = family.samples[start : start + SAMPLES_PER_TURN]
            parts.append(_lines(encode(_OneFamily(some)), has_head=number == 0))
            # Small families share a turn.
            if len(family.samples) > SAMPLES_PER_TURN // 10:
                await asyncio.sleep(0)
    is_open_metrics = content_type.startswith("application/openmetrics-text")
    return b"".join(parts) + (b"# EOF\n" if is_open_metrics else b""), content_type


async def _families(
    readers: Sequence[Reader],
    sources: Sequence[Callable[[], Iterable[Family]]],
    process: Callable[[], Iterable[Family]],
) -> AsyncIterator[Family]:
    for metric, samples in (await _read(readers)).items():
        yield _family(metric, samples)
    for family in await asyncio.get_running_loop().run_in_executor(None, process):
        yield family
    await asyncio.sleep(0)
    for source in sources:
        for family in source():
            yield family


async def _read(readers: Sequence[Reader]) -> Mapping[Metric, list[tuple[tuple[str, ...], Value]]]:
    """A metric may come in several readings, and of several readers; a family is written in one piece."""
    by_metric: dict[Metric, list[tuple[tuple[str, ...], Value]]] = {}
    for reader in readers:
        for reading in reader():
            if reading is None:
                await asyncio.sleep(0)
            else:
                by_metric.setdefault(reading.metric, []).extend(reading.samples)
        await asyncio.sleep(0)
    return by_metric


def _family(metric: Metric, samples: Sequence[tuple[tuple[str, ...], Value]]) -> Family:
    name = metric.name.removesuffix(_COUNTER_SUFFIX) if metric.kind == "counter" else metric.name
    family = Family(name, metric.help, metric.kind)
    for values, value in samples:
        # A total has no label where its parts have one.
        labels = dict(zip(metric.labels, values, strict=True)) if values else {}
        if isinstance(value, Summary):
            for quantile, one in zip(QUANTILES, value.quantiles, strict=True):
                family.samples.append(Sample(name, {**labels, "quantile": quantile}, one))
            family.samples.append(Sample(f"{name}_count", labels, value.number))
            family.samples.append(Sample(f"{name}_sum", labels, value.total))
        else:
            family.samples.append(Sample(metric.name, labels, value))
    return family


def _lines(text: bytes, *, has_head: bool) -> bytes:
    """Without what stands once in the whole: the end, and the head of a family's later parts."""
    return b"".join(
        line
        for line in text.splitlines(keepends=True)
        if not line.startswith(b"# EOF") and (has_head or not line.startswith(_COMMENT))
    )
