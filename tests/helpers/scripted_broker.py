"""A broker that answers as a test says, on a socket of its own."""

import asyncio
import struct
from collections.abc import Awaitable, Callable
from typing import Any

from kio.schema.api_versions.v4 import response as api_versions
from kio.schema.errors import ErrorCode as KioErrorCode

from penstock.protocol.apis import ApiKey
from penstock.protocol.messages import RequestHeader, decode_header, decode_response, encode_response

Answer = Callable[[RequestHeader], bytes | None]


def api_versions_answer(header: RequestHeader, versions: dict[int, tuple[int, int]]) -> bytes:
    keys: Any = tuple(
        api_versions.ApiVersion(api_key=key, min_version=first, max_version=last)  # type: ignore[arg-type]
        for key, (first, last) in versions.items()
    )
    _, empty = decode_response(ApiKey.API_VERSIONS, 1, struct.pack(">ihii", 1, 0, 0, 0))
    answer = api_versions.ApiVersionsResponse(
        error_code=KioErrorCode.none,
        api_keys=keys,
        throttle_time=empty.throttle_time,  # type: ignore[union-attr]
    )
    return encode_response(ApiKey.API_VERSIONS, header.api_version, header.correlation_id, answer)


def metadata_answer(header: RequestHeader) -> bytes:
    body = struct.pack(">ihii", header.correlation_id, 0, 0, 0)[:4] + bytes(8)
    _, answer = decode_response(ApiKey.METADATA, 0, body)
    return encode_response(ApiKey.METADATA, header.api_version, header.correlation_id, answer)


def behaved(versions: dict[int, tuple[int, int]]) -> Answer:
    """Tells these versions, by API key, and has no topics."""

    def answer(header: RequestHeader) -> bytes | None:
        if header.api_key == ApiKey.API_VERSIONS:
            return api_versions_answer(header, versions)
        return metadata_answer(header)

    return answer


def run(
    answer: Answer,
    scenario: Callable[[str, int], Awaitable[None]],
    new_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop,
) -> list[RequestHeader]:
    """Run the scenario against a broker that answers each request with `answer` or, where it is None, hangs up."""
    heard: list[RequestHeader] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                header = decode_header(await reader.readexactly(size))
                heard.append(header)
                frame = answer(header)
                if frame is None:
                    return
                writer.write(frame)
        except asyncio.IncompleteReadError:
            return
        finally:
            writer.close()

    async def main() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            async with asyncio.timeout(10):
                await scenario(*server.sockets[0].getsockname())

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(main())
    return heard
