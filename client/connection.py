"""One connection to one broker that speaks the protocol itself: what terminal commands, nodes and tests ask with.

One request at a time; callers that want more open more connections.
"""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections.abc import Callable, Mapping
from types import MappingProxyType, TracebackType
from typing import Any, Final, Self, cast

from kio.schema.api_versions.v4 import ApiVersionsRequest, ApiVersionsResponse

from .. import __version__
from ..protocol.apis import APIS, ApiKey
from ..protocol.errors import CorruptData, ErrorCode, KafkaError
from ..protocol.messages import NO_HEADER_TAGS, Request, Response, decode_response, encode_request, read_response_tags
from ..protocol.own_apis import OwnApiKey, encode_own_request, own_response_body
from ..protocol.primitives import Buffer
from ..protocol.versions import class_version

# Kafka's default of request.timeout.ms.
DEFAULT_TIMEOUT_MS: Final = 30_000
# A peer that stands still takes no last bytes and, in TLS, says no goodbye: Python would wait half a minute for that.
CLOSE_TIMEOUT_S: Final = 1.0
# No answer asked for here comes near it; a peer that announces more does not speak Kafka.
MAX_RESPONSE_SIZE: Final = 256 * 1024 * 1024
SOFTWARE_NAME: Final = "penstock"

_INT = struct.Struct(">i")
_AFTER_CORRELATION_ID = 4
_UNSUPPORTED_VERSION = ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")


class Connection:
    """An open connection. `versions` is what the broker said of itself: key to (first, last) version.

    Errors of `call`: ConnectionError when the broker is gone, TimeoutError past the deadline, CorruptData when what
    came is no answer. After each the connection is closed, and what was asked may or may not have been done.
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, peer: str, client_id: str, timeout_ms: int
    ) -> None:
        self.versions: Mapping[int, tuple[int, int]] = MappingProxyType({})
        self._reader = reader
        self._writer = writer
        self._client_id = client_id
        self._timeout_ms = timeout_ms
        self._correlation_id = 0
        self._turn = asyncio.Lock()
        # As it was asked for: a socket that is reset as soon as it is connected cannot say where it was.
        self._peer = peer

    @property
    def peer(self) -> str:
        """The broker's address as host:port."""
        return self._peer

    @property
    def peer_certificate(self) -> Mapping[str, Any] | None:
        """What the broker has shown and TLS has verified, as Python's `ssl` tells it."""
        return self._writer.get_extra_info("peercert") or None

    @property
    def is_open(self) -> bool:
        return not self._writer.is_closing() and not self._reader.at_eof()

    def version_for(self, request: Request) -> int:
        """The highest version that both sides know and that this class stands for; KafkaError without one."""
        api = APIS[request.__api_key__]
        first, last = self.versions.get(api.key, (0, -1))
        for version in range(min(last, api.max_version), max(first, api.min_version) - 1, -1):
            if request.__version__ in (version, class_version(api.key, version)):
                return version
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"{self._peer} serves {api.name} {f'{first} to {last}' if last >= first else 'not at all'}; "
            f"this asks with version {request.__version__}",
        )

    async def call(self, request: Request, *, timeout_ms: int | None = None) -> Response:
        """The broker's answer, of the class that stands for the version used (see `version_for`).

        Error codes inside the answer are the caller's business.
        """
        response, _ = await self.call_tagged(request, timeout_ms=timeout_ms)
        return response

    async def call_tagged(
        self,
        request: Request,
        *,
        timeout_ms: int | None = None,
        client_id: str | None = None,
        header_tags: bytes = NO_HEADER_TAGS,
    ) -> tuple[Response, Mapping[int, Buffer]]:
        """As `call`, with tagged fields in the headers of the request and of the response; `client_id` is of this
        request alone."""
        version = self.version_for(request)
        frame = await self._ask(request, version, timeout_ms or self._timeout_ms, client_id, header_tags)
        response = await self._decode(request.__api_key__, version, frame)
        return response, read_response_tags(request.__api_key__, version, frame)

    async def call_own(self, api_key: OwnApiKey, body: bytes, *, timeout_ms: int) -> bytes:
        """What a node of ours answers to a request that Kafka does not have. Others close the connection."""
        frame = await self._exchange(
            api_key.name,
            lambda correlation_id: encode_own_request(api_key, correlation_id, self._client_id, body),
            timeout_ms,
        )
        return own_response_body(frame)

    async def negotiate(self) -> None:
        """Ask for the versions that the broker serves."""
        question = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=__version__)
        version = APIS[ApiKey.API_VERSIONS].max_version
        frame = await self._ask(question, version, self._timeout_ms)
        if frame[_AFTER_CORRELATION_ID:].startswith(_UNSUPPORTED_VERSION):
            # A broker that does not know this version of the question refuses in version 0 of the answer (KIP-511).
            version = 0
            frame = await self._ask(question, version, self._timeout_ms)
        answer = await self._decode(ApiKey.API_VERSIONS, version, frame)
        assert isinstance(answer, ApiVersionsResponse)
        if answer.error_code:
            raise KafkaError(ErrorCode(answer.error_code), f"{self._peer} does not tell its versions")
        self.versions = MappingProxyType({api.api_key: (api.min_version, api.max_version) for api in answer.api_keys})

    def hand_over(self, protocol: asyncio.BaseProtocol) -> asyncio.Transport:
        """Let another protocol have what is received from now on; this object is only to be kept, and not to be used.

        Nothing may be asked and not answered yet. Raises ConnectionError when it is lost already: the protocol
        would not be notified.
        """
        if not self.is_open:
            raise ConnectionError(f"{self._peer} closed the connection")
        # What uvloop has for one is not of asyncio's class.
        transport = cast(asyncio.Transport, self._writer.transport)
        transport.set_protocol(protocol)
        return transport

    async def close(self) -> None:
        self._writer.close()
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await self._writer.wait_closed()
        except TimeoutError:
            self._writer.transport.abort()
        except OSError:
            # The other side was faster, perhaps with a reset: closed all the same.
            return

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _ask(
        self,
        request: Request,
        version: int,
        timeout_ms: int,
        client_id: str | None = None,
        header_tags: bytes = NO_HEADER_TAGS,
    ) -> bytes:
        api_key = request.__api_key__
        return await self._exchange(
            _describe(api_key, version),
            lambda correlation_id: encode_request(
                api_key, version, correlation_id, client_id or self._client_id, request, header_tags
            ),
            timeout_ms,
        )

    async def _exchange(self, what: str, encode: Callable[[int], bytes], timeout_ms: int) -> bytes:
        """The frame that answers; `encode` makes the one that asks, from its correlation id."""
        # Who gives up while it waits for its turn leaves the connection to the one that has it.
        async with self._turn:
            is_answered = False
            try:
                async with asyncio.timeout(timeout_ms / 1000):
                    self._correlation_id = (self._correlation_id + 1) % 2**31
                    sent_id = self._correlation_id
                    if self._writer.is_closing():
                        # uvloop takes a write for an error of its caller then.
                        raise ConnectionResetError("it is closed")
                    self._writer.write(encode(sent_id))
                    await self._writer.drain()
                    frame = await self._read_frame()
                (correlation_id,) = _INT.unpack_from(frame)
                if correlation_id != sent_id:
                    raise CorruptData(
                        f"{self._peer} answered {what} with correlation id {correlation_id}, not {sent_id}"
                    )
                is_answered = True
                return frame
            except TimeoutError:
                raise TimeoutError(f"{self._peer} did not answer {what} within {timeout_ms} ms") from None
            except asyncio.IncompleteReadError:
                raise ConnectionError(f"{self._peer} closed the connection instead of answering {what}") from None
            except OSError as error:
                raise ConnectionError(f"{self._peer} is gone, {what} was not answered: {error}") from None
            finally:
                if not is_answered:
                    # What the peer has not taken yet is not to reach it later.
                    self._writer.transport.abort()

    async def _read_frame(self) -> bytes:
        (size,) = _INT.unpack(await self._reader.readexactly(_INT.size))
        if not _INT.size <= size <= MAX_RESPONSE_SIZE:
            raise CorruptData(f"{self._peer} announces an answer of {size} bytes: it does not speak Kafka")
        return await self._reader.readexactly(size)

    async def _decode(self, api_key: int, version: int, frame: bytes) -> Response:
        try:
            return decode_response(api_key, version, frame)[1]
        except CorruptData as error:
            await self.close()
            raise CorruptData(f"{self._peer} answered {_describe(api_key, version)} wrongly: {error}") from None


async def connect(
    host: str,
    port: int,
    *,
    client_id: str = SOFTWARE_NAME,
    timeout_ms: int = DEFAULT_TIMEOUT_MS,
    tls: ssl.SSLContext | None = None,
) -> Connection:
    """A connection whose versions are negotiated, in `tls` if given; use it with `async with`.

    ConnectionError, TimeoutError or CorruptData, naming the address, when no Kafka broker answers; KafkaError
    when the broker refuses ApiVersions.
    """
    address = f"{host}:{port}"
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            reader, writer = await asyncio.open_connection(host, port, ssl=tls)
    except TimeoutError:
        raise TimeoutError(f"no connection to {address} within {timeout_ms} ms") from None
    except (OSError, ValueError) as error:
        # ValueError: what another node says of where it is need not be a name that a machine can have.
        raise ConnectionError(f"no connection to {address}: {error}") from None
    connection = Connection(reader, writer, peer=address, client_id=client_id, timeout_ms=timeout_ms)
    try:
        await connection.negotiate()
    except BaseException:
        await connection.close()
        raise
    return connection


def _describe(api_key: int, version: int) -> str:
    return f"{APIS[api_key].name} v{version}"
