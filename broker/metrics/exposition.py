"""Metrics as Prometheus reads them: its text format, or OpenMetrics where that is asked for.

The library is loaded with the first exposition. It chooses the format and writes the heads of families, numbers, and
the families of others whole. Lines of samples are written here, in a fourth of the library's time: for 10,000
partitions that is most of a second of CPU less. The text is made in slices, between which other requests have their
turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from typing import Final

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.utils import floatToGoString

from .rules.metric import QUANTILES, Metric, Reading, Summary
from .rules.readings import Reader

LINES_PER_TURN: Final = 250
"""Written in one turn of the event loop: less than a millisecond."""
LINES_MIN: Final = 10
"""What a reading counts for at least."""
FOREIGN_SAMPLES_PER_TURN: Final = 200
"""The same where the library writes them."""
_END: Final = b"# EOF\n"
_OPEN_METRICS: Final = "application/openmetrics-text"


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
    disk_readers: Sequence[Reader],
    sources: Sequence[Callable[[], Iterable[Family]]],
    process: Callable[[], Iterable[Family]],
    accept: str | None,
) -> tuple[bytes, str]:
    """Returns the text and its content type. `disk_readers` are called in the executor; `sources` yield families of the
    library."""
    encode, content_type = choose_encoder(accept or "")
    writer = _Writer(encode)
    parts: list[bytes] = []
    for reader in readers:
        for reading in reader():
            if reading is not None:
                parts.append(writer.text(reading))
            if reading is None or writer.is_turn_over():
                await asyncio.sleep(0)
    loop = asyncio.get_running_loop()
    for reader in disk_readers:
        readings = await loop.run_in_executor(None, _read_all, reader)
        parts.extend(writer.text(reading) for reading in readings if reading is not None)
    async for family in _foreign_families(sources, process):
        for start in range(0, max(1, len(family.samples)), FOREIGN_SAMPLES_PER_TURN):
            parts.append(writer.foreign_text(family, start))
            await asyncio.sleep(0)
    if content_type.startswith(_OPEN_METRICS):
        parts.append(_END)
    return b"".join(parts), content_type


def _read_all(reader: Reader) -> list[Reading | None]:
    return list(reader())


async def _foreign_families(
    sources: Sequence[Callable[[], Iterable[Family]]], process: Callable[[], Iterable[Family]]
) -> AsyncIterator[Family]:
    for family in await asyncio.get_running_loop().run_in_executor(None, process):
        yield family
    for source in sources:
        for family in source():
            yield family


class _Writer:
    """Of one exposition."""

    def __init__(self, encode: Callable[[_OneFamily], bytes]) -> None:
        self._encode = encode
        self._metric: Metric | None = None
        self._written: set[Metric] = set()
        self._line_count = 0

    def is_turn_over(self) -> bool:
        """Whether enough was written since it last was."""
        is_over = self._line_count >= LINES_PER_TURN
        if is_over:
            self._line_count = 0
        return is_over

    def text(self, reading: Reading) -> bytes:
        """Readings of one metric come one behind the other: the first has the family's head."""
        metric = reading.metric
        head = b""
        if metric is not self._metric:
            assert metric not in self._written, f"{metric.name} is read in two places"
            self._metric = metric
            self._written.add(metric)
            name = metric.name.removesuffix("_total") if metric.kind == "counter" else metric.name
            head = self._encoded(Family(name, metric.help, metric.kind))
        lines = list(_lines(reading))
        # Reading takes its time, too, where it finds nothing.
        self._line_count += max(len(lines), LINES_MIN)
        return head + "".join(lines).encode()

    def foreign_text(self, family: Family, start: int) -> bytes:
        """Some samples of a family of others, from `start` on."""
        some = Family(family.name, family.documentation, family.type, family.unit)
        some.samples = family.samples[start : start + FOREIGN_SAMPLES_PER_TURN]
        text = self._encoded(some)
        if start == 0:
            return text
        return b"".join(line for line in text.splitlines(keepends=True) if not line.startswith(b"#"))

    def _encoded(self, family: Family) -> bytes:
        return self._encode(_OneFamily(family)).removesuffix(_END)


def _lines(reading: Reading) -> Iterator[str]:
    metric = reading.metric
    name = metric.name
    # In the order of their names, as the library writes them.
    order = sorted(range(len(metric.labels)), key=metric.labels.__getitem__)
    labels = [metric.labels[place] for place in order]
    for values, value in reading.samples:
        if isinstance(value, Summary):
            yield from _summary_lines(metric, values, value)
        elif not values:
            # A total has no label where its parts have one.
            yield f"{name} {floatToGoString(value)}\n"
        else:
            pairs = [f'{label}="{_escaped(values[place])}"' for label, place in zip(labels, order, strict=True)]
            yield f"{name}{{{','.join(pairs)}}} {floatToGoString(value)}\n"


def _summary_lines(metric: Metric, values: Sequence[str], summary: Summary) -> Iterator[str]:
    pairs = {label: _escaped(value) for label, value in zip(metric.labels, values, strict=True)}
    for quantile, one in zip(QUANTILES, summary.quantiles, strict=True):
        yield f"{metric.name}{_braced({**pairs, 'quantile': quantile})} {floatToGoString(one)}\n"
    yield f"{metric.name}_count{_braced(pairs)} {floatToGoString(summary.number)}\n"
    yield f"{metric.name}_sum{_braced(pairs)} {floatToGoString(summary.total)}\n"


def _braced(pairs: dict[str, str]) -> str:
    return "{" + ",".join(f'{label}="{pairs[label]}"' for label in sorted(pairs)) + "}" if pairs else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
