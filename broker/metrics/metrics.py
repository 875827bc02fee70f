"""The metrics of one node: what is read for an exposition, and when the library is loaded that writes it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from ..network.dispatch import Dispatcher
from ..network.listeners import Listeners
from ..network.rules.request_statistics import RequestStatistics
from .loop_watch import LoopWatch

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric as Family

    from .rules.readings import Reader, Readings


class Collector(Protocol):
    """As `prometheus_client` has them."""

    def collect(self) -> Iterable[Family]:
        """Called once for each exposition; what it takes, others wait."""


class Metrics:
    """Made with the node; readers are added as its parts are."""

    def __init__(self, loop: asyncio.AbstractEventLoop, node_id: int) -> None:
        self.watch = LoopWatch(loop)
        self._loop = loop
        self._listeners: list[Listeners] = []
        self._dispatchers: list[Dispatcher] = []
        self._requests: list[RequestStatistics] = []
        self._node_id = node_id
        self._readers: list[Reader] = []
        # What makes the readers is loaded for the first exposition: a node starts without.
        self._later: list[Callable[[], Callable[[], None]]] = [self._load_own]
        self._preparations: list[Callable[[], Awaitable[None]]] = []
        self._disk_readers: list[Reader] = []
        self._collectors: list[Collector] = []
        self._exposition: Any = None
        self._process: Callable[[], Iterable[Family]] | None = None
        self._exposition_count = 0
        self._loading = asyncio.Lock()

    def start(self) -> None:
        """Samples the event loop from now on."""
        self.watch.start()

    def stop(self) -> None:
        self.watch.stop()

    def add_listeners(self, listeners: Listeners, dispatcher: Dispatcher, requests: RequestStatistics) -> None:
        """Adds what one set of listeners counts; what several count is told together."""
        self._listeners.append(listeners)
        self._dispatchers.append(dispatcher)
        self._requests.append(requests)
        self.watch.on_sample(requests.adapt)

    def add_reader(self, reader: Reader) -> None:
        """Adds what is read for each exposition."""
        self._readers.append(reader)

    def add_later(self, load: Callable[[], Callable[[], None]]) -> None:
        """Has `load` called in a thread before the next exposition, and then, in the loop, what it returns, which adds
        readers. `load` is where their modules are imported."""
        self._later.append(load)

    def add_preparation(self, prepare: Callable[[], Awaitable[None]]) -> None:
        """Adds what is awaited before readers are called; it has a deadline of its own."""
        self._preparations.append(prepare)

    def add_disk_reader(self, reader: Reader) -> None:
        """Adds what waits for a disk to be read: it is read in the executor."""
        self._disk_readers.append(reader)

    def add_source(self, collector: Collector) -> None:
        """Adds what makes families of `prometheus_client` itself, with names that nothing else has."""
        self._collectors.append(collector)

    async def exposition(self, accept: str | None) -> tuple[bytes, str]:
        """Returns the metrics of now and their content type, for the Accept header of a request."""
        # Loading the library takes a tenth of a second, which nothing else waits for in a thread.
        async with self._loading:
            module = self._exposition
            if module is None:
                module = await self._loop.run_in_executor(None, import_module, f"{__package__}.exposition")
                self._exposition = module
                self._process = module.process_collector()
            while self._later:
                add = await self._loop.run_in_executor(None, self._later[0])
                add()
                del self._later[0]
        for prepare in self._preparations:
            await prepare()
        self._exposition_count += 1
        body, content_type = await module.expose(
            self._readers,
            self._disk_readers,
            [collector.collect for collector in self._collectors],
            self._process,
            accept,
        )
        return body, content_type

    def _load_own(self) -> Callable[[], None]:
        from .process_reader import ProcessReader
        from .request_reader import ConnectionReader, RequestReader
        from .rules.metric import read
        from .rules.process_metrics import EXPOSITIONS

        def read_own() -> Readings:
            yield read(EXPOSITIONS, self._exposition_count)

        def add() -> None:
            self.add_reader(ProcessReader(self.watch, self._node_id))
            self.add_reader(read_own)
            self.add_reader(RequestReader(self._requests, self.watch.now_ms))
            self.add_reader(ConnectionReader(self._listeners, self._dispatchers))

        return add
