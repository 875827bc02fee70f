"""The text of an exposition is that of the client library, lines written here too."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable

import pytest
from prometheus_client import exposition as text_format
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.openmetrics import exposition as open_metrics
from prometheus_client.samples import Sample

from penstock.broker.metrics.exposition import FOREIGN_SAMPLES_PER_TURN, LINES_PER_TURN, expose
from penstock.broker.metrics.rules.metric import QUANTILES, Metric, Reading, Summary, Value, own, read
from penstock.broker.metrics.rules.readings import Readings

OPEN_METRICS = "application/openmetrics-text;version=1.0.0"
GAUGE = own("gauge", "penstock_gauge", 'Of a "label"\\.', "topic", "partition", "clientId")
COUNTER = own("counter", "penstock_things_total", "Things.", "kind")
SUMMARY = own("summary", "penstock_times", "Times.", "request")
SAMPLES: dict[Metric, list[tuple[tuple[str, ...], Value]]] = {
    GAUGE: [(("a", "0", "x"), 1.0), (('q"uo\\te\nd', "12", "ü"), 1.5e-9), (("", "", ""), float("inf"))],
    COUNTER: [((), 3), (("a",), 123456789012), (("b",), 0)],
    SUMMARY: [(("Fetch",), Summary((1.0, 2.0, 3.0, 4.0, 5.0, 6.25), 7, 0.125))],
}


class Families:
    """What the library writes for the same."""

    def collect(self) -> Iterable[Family]:
        for metric, samples in SAMPLES.items():
            family = Family(metric.name.removesuffix("_total"), metric.help, metric.kind)
            for values, value in samples:
                labels = dict(zip(metric.labels, values, strict=False))
                if isinstance(value, Summary):
                    for quantile, one in zip(QUANTILES, value.quantiles, strict=True):
                        family.samples.append(Sample(metric.name, {**labels, "quantile": quantile}, one))
                    family.samples.append(Sample(f"{metric.name}_count", labels, value.number))
                    family.samples.append(Sample(f"{metric.name}_sum", labels, value.total))
                else:
                    family.samples.append(Sample(metric.name, labels, value))
            yield family


def nothing() -> Iterable[Family]:
    return ()


def exposed(reader: Callable[[], Readings], accept: str | None, *sources: Callable[[], Iterable[Family]]) -> str:
    return asyncio.run(expose([reader], [], sources, nothing, accept))[0].decode()


@pytest.mark.parametrize("accept", [None, OPEN_METRICS])
def test_lines_are_those_that_the_library_writes(accept: str | None) -> None:
    def reader() -> Readings:
        for metric, samples in SAMPLES.items():
            for one in samples:
                # In several readings: the head stands once.
                yield Reading(metric, [one])
                yield None

    module = text_format if accept is None else open_metrics
    assert exposed(reader, accept) == module.generate_latest(Families()).decode()


@pytest.mark.parametrize("accept", [None, OPEN_METRICS])
def test_large_families_of_others_are_written_in_parts_and_whole(accept: str | None) -> None:
    class Large:
        def collect(self) -> Iterable[Family]:
            family = Family("clients", "Of clients.", "gauge")
            family.samples = [
                Sample("clients", {"number": str(number)}, number) for number in range(3 * FOREIGN_SAMPLES_PER_TURN + 1)
            ]
            return [family]

    def reader() -> Readings:
        return iter(())

    module = text_format if accept is None else open_metrics
    assert exposed(reader, accept, Large().collect) == module.generate_latest(Large()).decode()


def test_a_metric_of_two_readers_is_a_defect() -> None:
    def reader() -> Readings:
        yield read(GAUGE_WITHOUT_LABELS, 1)
        yield Reading(COUNTER, [])
        yield read(GAUGE_WITHOUT_LABELS, 2)

    with pytest.raises(AssertionError, match="penstock_one is read in two places"):
        exposed(reader, None)


GAUGE_WITHOUT_LABELS: Metric = own("gauge", "penstock_one", "One.")


def test_other_work_has_its_turn_between_slices() -> None:
    turns_per_reading: list[int] = []

    async def scenario() -> None:
        turns = 0

        def reader() -> Readings:
            for number in range(10):
                turns_per_reading.append(turns)
                yield Reading(COUNTER, [((f"{number}-{one}",), one) for one in range(LINES_PER_TURN)])

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        working = asyncio.get_running_loop().create_task(other())
        await expose([reader], [], [], nothing, None)
        working.cancel()

    asyncio.run(scenario())
    assert len(turns_per_reading) == 10
    assert all(after > before for before, after in itertools.pairwise(turns_per_reading))
