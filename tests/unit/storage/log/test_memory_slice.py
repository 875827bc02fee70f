import socket

import pytest

from penstock.storage.log.file_slice import MemorySlice

DATA = bytes(range(256)) * 16 * 1024


def test_bytes_from_memory_go_into_a_socket_as_it_has_room() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        one = MemorySlice(memoryview(DATA)[256:])
        sent_bytes = one.send_nowait(ours.fileno(), 0, 1000)
        assert sent_bytes == 1000
        while count := one.send_nowait(ours.fileno(), sent_bytes, one.size):
            sent_bytes += count
        assert sent_bytes < one.size, "the socket took more than it has room for"
        received = b""
        while len(received) < one.size:
            received += theirs.recv(1024 * 1024)
            sent_bytes += one.send_nowait(ours.fileno(), sent_bytes, one.size) if sent_bytes < one.size else 0
        assert received == DATA[256:]


def test_a_peer_that_is_gone_is_a_connection_error() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        theirs.close()
        with pytest.raises(ConnectionError):
            MemorySlice(memoryview(DATA)).send_nowait(ours.fileno(), 0, 1000)
