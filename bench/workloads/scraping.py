"""What it costs a node that its metrics are read each second, beside tiny requests.

The same load is put on with and without the reader, in turn; the ratio is the median of those of neighbours. What one
exposition costs is measured by itself, too, since it is less than the difference between two neighbours. No
Prometheus reads that often: at its defaults it reads every 15 s or 60 s.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from http.client import HTTPConnection
from statistics import median
from typing import Final

from ...local.background_work import BackgroundWork
from ...local.local_node import LocalNode
from ..target import Target
from ..usage import cpu_s
from .tiny import tiny

SCRAPE_INTERVAL_S: Final = 1.0
IN_FLIGHT: Final = 5
EXPOSITIONS: Final = 20
_MILLISECONDS: Final = 1_000
_TIMEOUT_S: Final = 30.0


def scraping(target: Target, *, pairs: int, requests: int) -> Mapping[str, float | None]:
    """CPU of a request without and with the reader, and of an exposition."""
    with target.fresh_running() as (running, node):
        cpu_us: dict[bool, list[float]] = {False: [], True: []}
        for number in range(pairs + 1):
            for is_scraped in (False, True) if number % 2 else (True, False):
                with _Reader(node) if is_scraped else nullcontext():
                    values = tiny(running, in_flight=IN_FLIGHT, requests=requests)
                value = values["broker_cpu_us_per_request"]
                assert value is not None, "its process is known"
                # The first exposition loads what makes it.
                if number:
                    cpu_us[is_scraped].append(value)
        before_s = cpu_s(running.pids)
        for _ in range(EXPOSITIONS):
            with _Reader(node):
                pass
        exposition_s = cpu_s(running.pids) - before_s
    return {
        "broker_cpu_us_per_request": median(cpu_us[False]),
        "scraped_cpu_us_per_request": median(cpu_us[True]),
        "scraping_cpu_ratio": median(beside / alone for alone, beside in zip(cpu_us[False], cpu_us[True], strict=True)),
        "exposition_cpu_ms": exposition_s / EXPOSITIONS * _MILLISECONDS,
    }


class _Reader(BackgroundWork):
    """Reads the metrics of a node once a second, and once at least."""

    def __init__(self, node: LocalNode) -> None:
        super().__init__("metrics")
        assert node.admin_port is not None, "only asked of nodes that have metrics"
        self._host, self._port = node.host, node.admin_port

    def _work(self) -> None:
        connection = HTTPConnection(self._host, self._port, timeout=_TIMEOUT_S)
        try:
            while True:
                connection.request("GET", "/metrics")
                answer = connection.getresponse()
                answer.read()
                if answer.status != 200:
                    raise OSError(f"metrics were refused with {answer.status}")
                if self._is_ended.wait(SCRAPE_INTERVAL_S):
                    return
        finally:
            connection.close()
