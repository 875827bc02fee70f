"""A real Prometheus that scrapes every second, and what dashboards ask it."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, Final

from missing_tools import unavailable
from waiting import wait_for

from penstock.local.ports import find_free

BOARDS: Final = Path(__file__).resolve().parents[2] / "deploy/grafana/dashboards"
_STOP_TIMEOUT_S: Final = 30.0
_LAST_CHARACTERS: Final = 2000


class Prometheus:
    def __init__(self, url: str) -> None:
        self._url = url

    def query(self, expression: str) -> list[dict[str, Any]]:
        asked = urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(f"{self._url}/api/v1/query?{asked}", timeout=30) as answer:
            result: list[dict[str, Any]] = json.load(answer)["data"]["result"]
            return result

    def firing(self) -> set[str]:
        return {one["metric"]["alertname"] for one in self.query('ALERTS{alertstate="firing"}')}

    def wait_all_have_data(self, queries: Mapping[str, str], *, before_each: Callable[[], object] = bool) -> None:
        """Until each query has had an answer; `queries` says whose it is, `before_each` is called before each look."""
        left = dict(queries)

        def are_answered() -> bool:
            before_each()
            for query in tuple(left):
                if self.query(query):
                    del left[query]
            return not left

        wait_for(are_answered, lambda: f"queries without data: {left}", interval_s=1.0)

    def is_scraping(self, job: str, count: int) -> bool:
        try:
            return len(self.query(f'up{{job="{job}"}} == 1')) == count
        except OSError:
            return False


@contextmanager
def prometheus_server(folder: Path, shipped: str, targets: Sequence[str], *, job: str) -> Iterator[Prometheus]:
    """A server with a file of configuration as it is shipped, whose job scrapes these targets. It runs until the end of
    the context, and scrapes them all at the beginning."""
    program = shutil.which("prometheus")
    if program is None:
        unavailable("prometheus is not installed (Debian: apt-get install prometheus)")
    configured = re.sub(r"- targets:.*\n(?: +- \S+:\d+\n)*", f"- targets: {json.dumps(targets)}\n", shipped)
    configured = re.sub(r"(scrape|evaluation)_interval: \S+", r"\1_interval: 1s", configured)
    (folder / "prometheus.yml").write_text(configured)
    port = find_free(Random())
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                program,
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        server = Prometheus(f"http://127.0.0.1:{port}")
        wait_for(
            lambda: server.is_scraping(job, len(targets)),
            lambda: f"{job} is scraped: {(folder / 'log').read_text()[-_LAST_CHARACTERS:]}",
        )
        yield server
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(_STOP_TIMEOUT_S)


def board_queries(*boards: Path) -> dict[str, str]:
    """Queries of dashboards with their variables filled in, and the panels that ask them."""
    return {
        _without_variables(target["expr"]): f"{board.stem}: {panel['title']}"
        for board in boards
        for panel in json.loads(board.read_text())["panels"]
        for target in panel.get("targets", ())
    }


def _without_variables(query: str) -> str:
    return re.sub(r"\$(cluster|instance|topic|pipeline|query)\b", ".*", query).replace("$__rate_interval", "30s")
