"""Batches are stored as they were sent: nothing behind their base offset and leader epoch is changed."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer

from penstock.local.cluster import LocalCluster
from penstock.protocol.apis import ApiKey
from penstock.protocol.batches import iterate_headers
from penstock.protocol.messages import decode_header
from penstock.protocol.produce import decode_produce

pytestmark = pytest.mark.integration

DEADLINE_S = 60.0
UNCHECKED_BYTES = 16
"""Base offset, length and leader epoch: what the broker writes, outside the checksum."""


class RecordingProxy:
    """Passes bytes between clients and one node, and keeps what clients sent, connection by connection."""

    def __init__(self) -> None:
        self.sent: list[bytearray] = []
        self.target_port = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> int:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        node_reader, node_writer = await asyncio.open_connection("127.0.0.1", self.target_port)
        self.sent.append(bytearray())
        for source, target, record in ((reader, node_writer, self.sent[-1]), (node_reader, writer, None)):
            task = asyncio.create_task(self._pass(source, target, record))
            self._tasks.add(task)

    async def _pass(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, record: bytearray | None) -> None:
        try:
            while data := await source.read(65536):
                if record is not None:
                    record += data
                target.write(data)
                await target.drain()
        finally:
            target.close()


def hashes_of(batches: bytes) -> list[str]:
    return [
        hashlib.sha256(batches[position + UNCHECKED_BYTES : position + header.size_bytes]).hexdigest()
        for position, header in iterate_headers(batches, 0, len(batches))
    ]


def produced_batches(stream: bytes) -> list[str]:
    """Hashes of the batches in the Produce requests of one connection's bytes."""
    hashes: list[str] = []
    position = 0
    while position + 4 <= len(stream):
        size = int.from_bytes(stream[position : position + 4], "big")
        frame = memoryview(stream)[position + 4 : position + 4 + size]
        header = decode_header(frame, 0)
        if header.api_key == ApiKey.PRODUCE:
            for produced in decode_produce(header.api_version, frame, header.body_offset).topics:
                for _, records in produced.partitions:
                    hashes += hashes_of(bytes(records or b""))
        position += 4 + size
    return hashes


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
def test_stored_batches_hash_to_what_was_sent(tmp_path: Path, codec: str | None) -> None:
    async def scenario() -> None:
        proxy = RecordingProxy()
        advertised = f"PLAINTEXT://127.0.0.1:{await proxy.start()}"
        cluster = LocalCluster(tmp_path / "cluster", properties={"advertised.listeners": advertised})
        proxy.target_port = cluster.nodes[1].port
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, cluster.start)
        try:
            producer = AIOKafkaProducer(
                bootstrap_servers=cluster.bootstrap, compression_type=codec, enable_idempotence=True, linger_ms=5
            )
            await producer.start()
            try:
                for i in range(400):
                    await producer.send("hashed", f"value {i} ".encode() * 9, key=str(i).encode(), partition=0)
            finally:
                await producer.stop()
        finally:
            await loop.run_in_executor(None, cluster.stop)
            await proxy.stop()
        folder = next(cluster.nodes[1].data.rglob("hashed-0"))
        stored = [value for log in sorted(folder.glob("*.log")) for value in hashes_of(log.read_bytes())]
        sent = [value for stream in proxy.sent for value in produced_batches(bytes(stream))]
        assert sent
        assert stored == sent

    asyncio.run(asyncio.wait_for(scenario(), DEADLINE_S))
