"""A schema registry of one test: schemas by id and by subject, over HTTP or HTTPS, and what was asked of it."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import unquote, urlsplit

USER_INFO: Final = "reader:hunter2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    schema: str
    kind: str = "AVRO"
    references: tuple[dict[str, Any], ...] = ()

    def answer(self) -> dict[str, Any]:
        """As Confluent's registry: the type of Avro, the oldest, is left out."""
        kind = {} if self.kind == "AVRO" else {"schemaType": self.kind}
        return {"schema": self.schema, **kind, **({"references": list(self.references)} if self.references else {})}


class SchemaRegistry(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, context: ssl.SSLContext | None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self._scheme = "http"
        if context is not None:
            self._scheme = "https"
            # The thread of a connection does its handshake, as it reads.
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.by_id: dict[int, Registered] = {}
        self.subjects: dict[str, list[Registered]] = {}
        self.asked: list[str] = []
        self.failures: list[int] = []
        """Statuses that the next requests are answered with."""

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self.server_port}"

    def register(self, schema_id: int, registered: Registered, *, subject: str = "") -> None:
        self.by_id[schema_id] = registered
        if subject:
            self.subjects.setdefault(subject, []).append(registered)

    def found(self, path: str) -> Registered | None:
        match path.strip("/").split("/"):
            case ["schemas", "ids", number]:
                return self.by_id.get(int(number))
            case ["subjects", subject, "versions", version]:
                versions = self.subjects.get(unquote(subject), [])
                index = len(versions) if version == "latest" else int(version)
                return versions[index - 1] if 0 < index <= len(versions) else None
        return None


class _Handler(BaseHTTPRequestHandler):
    server: SchemaRegistry

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        self.server.asked.append(path)
        expected = f"Basic {base64.b64encode(USER_INFO.encode()).decode()}"
        if self.server.failures:
            self._answer(self.server.failures.pop(0), {})
        elif self.headers.get("Authorization") != expected:
            self._answer(401, {"error_code": 401})
        elif (found := self.server.found(path)) is None:
            self._answer(404, {"error_code": 40403})
        else:
            self._answer(200, found.answer())

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def handle(self) -> None:
        # A client that refuses the certificate leaves in the handshake.
        with suppress(ssl.SSLError, ConnectionError):
            super().handle()

    def log_message(self, *_arguments: object) -> None:
        pass


@contextmanager
def schema_registry(context: ssl.SSLContext | None = None) -> Iterator[SchemaRegistry]:
    """Over HTTPS with the certificate of `context`."""
    with SchemaRegistry(context) as server, ThreadPoolExecutor(1) as pool:
        pool.submit(server.serve_forever, 0.01)
        try:
            yield server
        finally:
            server.shutdown()
