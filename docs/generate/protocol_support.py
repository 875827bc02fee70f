"""Write docs/protocol-support.md: what Apache Kafka 4.3.1 serves on a broker's listener, and what is built of it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from random import Random

from penstock.broker.configuration.node_config import load
from penstock.broker.node.server import Node
from penstock.protocol.apis import APIS, Api
from penstock.storage.disk.memory_files import MemoryFiles

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = ROOT / "docs" / "protocol-support.md"
HEAD = """# Protocol support

Written by `make docs` from the API table and the handlers of a node.

Every API that Apache Kafka 4.3.1 serves on a broker's listener. *Versions* is the range that ApiVersions tells, which
is Kafka's own: an API is built for all of its versions or not at all. ApiVersions lists only what is built,
and a request of another API is answered with an error.

| key | API | versions | status | brought by |
|----:|-----|----------|--------|------------|
"""


def main() -> None:
    """Write the page."""
    OUTPUT.write_text(render(built_apis()))
    sys.stdout.write(f"{OUTPUT.relative_to(ROOT)}\n")


def built_apis() -> tuple[Api, ...]:
    """What a node has handlers for: one is started, on a disk in memory, to be asked."""
    config = load({"listeners": "PLAINTEXT://127.0.0.1:0", "log.dir": "/data"})

    async def ask() -> tuple[Api, ...]:
        loop = asyncio.get_running_loop()
        node = Node(config, MemoryFiles(), loop=loop, wall_clock_ms=lambda: 0, random=Random(0))
        await node.start()
        built = node.parts.handlers.built
        await node.stop()
        return built

    return asyncio.run(ask())


def render(built: Collection[Api]) -> str:
    """The text of the page."""
    return HEAD + "".join(_rows({api.key for api in built}))


def _rows(built_keys: Collection[int]) -> Iterator[str]:
    for key in sorted(APIS):
        api = APIS[key]
        if api.on_broker:
            versions = f"{api.advertised_min_version} to {api.max_version}"
            status = "built" if key in built_keys else ""
            kips = ", ".join(f"{version}: {names}" for version, names in sorted(api.kips.items()))
            yield f"| {key} | {api.name} | {versions} | {status} | {kips} |\n"


if __name__ == "__main__":
    main()
