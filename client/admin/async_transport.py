"""Asks nodes over HTTP without blocking, through aiohttp."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from types import NoneType, TracebackType
from typing import Any, Self

import aiohttp

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


class AsyncTransport:
    """The addresses are tried in order, from the one that answered last."""

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
        self._session: aiohttp.ClientSession | None = None
        self._cluster_id: str | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def cluster_id(self) -> str:
        """Of the cluster that answers, asked once."""
        if self._cluster_id is None:
            clusters = await self.ask("GET", "/v3/clusters", {}, {}, None, dict[str, Any])
            self._cluster_id = str(clusters["data"][0]["cluster_id"])
        return self._cluster_id

    async def ask(
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
        response = await self._send(method, target(path, parameters, query), encoded(body))
        async with response:
            try:
                content = await response.read()
            except (aiohttp.ClientError, TimeoutError) as error:
                raise AdminUnreachable(f"{response.url.origin()} broke its answer off: {error}") from error
            return decoded(response.status, response.content_type, content, answer, others)

    async def stream(
        self, method: str, path: str, parameters: Mapping[str, object], query: Mapping[str, object], body: object
    ) -> AsyncIterator[bytes]:
        """The lines of an answer without an end. Raises AdminProblem, AdminUnreachable."""
        response = await self._send(method, target(path, parameters, query), encoded(body), is_endless=True)
        async with response:
            if response.status != 200:
                decoded(response.status, response.content_type, await response.read(), NoneType, {})
            try:
                async for line in response.content:
                    yield line
            except aiohttp.ClientError as error:
                raise AdminUnreachable(f"{response.url.origin()} broke its answer off: {error}") from error

    async def _send(
        self, method: str, path: str, body: bytes | None, *, is_endless: bool = False
    ) -> aiohttp.ClientResponse:
        if self._session is None:
            self._session = aiohttp.ClientSession()
        timeout = aiohttp.ClientTimeout(total=None if is_endless else self._timeout_s, sock_connect=self._timeout_s)
        reasons = {}
        for address in self._addresses:
            try:
                return await self._session.request(
                    method,
                    f"{address}{path}",
                    data=body,
                    headers={**headers_of(method), **self.credentials.headers_for(address)},
                    timeout=timeout,
                    ssl=True if self.credentials.tls is None else self.credentials.tls,
                )
            except aiohttp.ClientConnectorError as error:
                # Nothing was sent: another node may be asked.
                reasons[address] = error.strerror or error
                self._addresses.try_last(address)
            except (aiohttp.ClientError, TimeoutError) as error:
                raise AdminUnreachable(f"{address} gave no answer: {str(error) or type(error).__name__}") from error
        raise unreachable(reasons)
