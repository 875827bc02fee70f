"""A port that forwards to another, and can be cut: what a broker that loses its network sees."""

import contextlib
import socket
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

HOST = "127.0.0.1"
# A connection takes two threads.
_THREADS_MAX = 64


class CutProxy:
    """Use in a `with` statement. While it is cut, what connects is closed at once."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._listener = socket.create_server((HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        self._lock = Lock()
        self._is_cut = False
        self._sockets: set[socket.socket] = set()
        self._threads = ThreadPoolExecutor(_THREADS_MAX)
        self._threads.submit(self._accept, self._listener)

    def cut(self) -> None:
        with self._lock:
            self._is_cut = True
            for one in self._sockets:
                # Closing alone would leave a thread that reads from it waiting.
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def refuse(self) -> None:
        """Cut, and the port refuses connections."""
        self.cut()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def heal(self) -> None:
        with self._lock:
            self._is_cut = False
        if self._listener.fileno() < 0:
            self._listener = socket.create_server((HOST, self.port))
            self._threads.submit(self._accept, self._listener)

    def __enter__(self) -> "CutProxy":
        return self

    def __exit__(self, *_: object) -> None:
        self.refuse()
        self._threads.shutdown()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection((HOST, self._target_port), timeout=5)
                far.settimeout(None)
            except OSError:
                near.close()
                continue
            with self._lock:
                if self._is_cut:
                    near.close()
                    far.close()
                    continue
                self._sockets |= {near, far}
            self._threads.submit(self._forward, near, far)
            self._threads.submit(self._forward, far, near)

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        with self._lock:
            if source in self._sockets:
                self._sockets.discard(source)
                source.close()
