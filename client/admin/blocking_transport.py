"""Asks nodes over HTTP and waits for the answer, through the standard library: what a command loads is little."""

from __future__ import annotations

import http.client
from collections.abc import Iterator, Mapping, Sequence
from types import NoneType, TracebackType
from typing import Any, Final, Self

from .admin_address import AdminAddress
from .credentials import NO_CREDENTIALS, AdminCredentials
from .errors import AdminUnreachable
from .exchange import (
    DEFAULT_TIMEOUT_S,
    NO_OTHERS,
    Addresses,
    T,
    decoded,
    encoded,
    headers_of,
    target,
    unreachable,
)

_BROKEN: Final = (OSError, http.client.HTTPException)


class BlockingTransport:
    """The addresses are tried in order, from the one that answered last. Not safe to share between threads."""

    def __init__(
        self,
        urls: str | Sequence[str],
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        credentials: AdminCredentials = NO_CREDENTIALS,
    ) -> None:
        """`urls` as `http://host:port` or `https://host:port`, several separated by commas. Raises ValueError."""
        self._addresses = Addresses(urls)
        self.credentials = credentials
        self._timeout_s = timeout_s
        self._connection: http.client.HTTPConnection | None = None
        self._headers: Mapping[str, str] = {}
        """Of the connection."""
        self._cluster_id: str | None = None

    @property
    def addresses(self) -> tuple[str, ...]:
        """In the order in which they are tried."""
        return tuple(map(str, self._addresses))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def cluster_id(self) -> str:
        """Of the cluster that answers, asked once."""
        if self._cluster_id is None:
            clusters = self.ask("GET", "/v3/clusters", {}, {}, None, dict[str, Any])
            self._cluster_id = str(clusters["data"][0]["cluster_id"])
        return self._cluster_id

    def ask(
        self,
        method: str,
        path: str,
        parameters: Mapping[str, object],
        query: Mapping[str, object],
        body: object,
        answer: type[T],
        others: Mapping[int, Any] = NO_OTHERS,
    ) -> T:
        """Raises AdminProblem, AdminUnreachable."""
        response = self._send(method, target(path, parameters, query), encoded(body))
        try:
            content = response.read()
        except _BROKEN as error:
            self.close()
            raise AdminUnreachable(f"The answer was broken off: {error}") from error
        return decoded(response.status, response.headers.get("Content-Type", ""), content, answer, others)

    def stream(
        self, method: str, path: str, parameters: Mapping[str, object], query: Mapping[str, object], body: object
    ) -> Iterator[bytes]:
        """The lines of an answer without an end; a silence longer than the timeout ends it.

        Raises AdminProblem, AdminUnreachable.
        """
        response = self._send(method, target(path, parameters, query), encoded(body))
        try:
            if response.status != 200:
                decoded(response.status, response.headers.get("Content-Type", ""), response.read(), NoneType, {})
            while line := response.readline():
                yield line
        except _BROKEN as error:
            raise AdminUnreachable(f"The answer was broken off: {error}") from error
        finally:
            self.close()

    def _send(self, method: str, path: str, body: bytes | None) -> http.client.HTTPResponse:
        # The node closes a connection that is idle for long. A read is sent again then; of a write no one could tell
        # whether it had been done, so it goes over a new connection.
        if self._connection is not None and method == "GET":
            kept, self._connection = self._connection, None
            try:
                response = self._exchange(kept, method, path, body)
            except _BROKEN:
                kept.close()
            else:
                self._connection = kept
                return response
        self.close()
        connection = self._connect()
        try:
            response = self._exchange(connection, method, path, body)
        except _BROKEN as error:
            connection.close()
            scheme = "https" if isinstance(connection, http.client.HTTPSConnection) else "http"
            url = f"{scheme}://{connection.host}:{connection.port}"
            raise AdminUnreachable(f"{url} gave no answer: {error}") from error
        self._connection = connection
        return response

    def _connect(self) -> http.client.HTTPConnection:
        reasons = {}
        for address in self._addresses:
            connection = self._connection_to(address)
            try:
                connection.connect()
            except OSError as error:
                reasons[address] = error.strerror or error
                self._addresses.try_last(address)
            else:
                self._headers = self.credentials.headers_for(address)
                return connection
        raise unreachable(reasons)

    def _connection_to(self, address: AdminAddress) -> http.client.HTTPConnection:
        host, port = address.host, address.port
        if not address.is_encrypted:
            return http.client.HTTPConnection(host, port, timeout=self._timeout_s)
        return http.client.HTTPSConnection(host, port, timeout=self._timeout_s, context=self.credentials.tls)

    def _exchange(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None
    ) -> http.client.HTTPResponse:
        connection.request(method, path, body=body, headers={**headers_of(method), **self._headers})
        return connection.getresponse()
