"""A client that has said who it is, with SASL PLAIN, and asks."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from differential import messages
from differential.target import ClosedError, Link, SilentError
from kio.index import load_request_schema, load_response_schema

from penstock.protocol.apis import APIS, ApiKey, request_header_version, response_header_version


def password_of(user: str) -> str:
    return f"{user}-secret"


class Session:
    """A connection of one user, made when it is needed; `user` None: one that says nothing."""

    def __init__(self, address: tuple[str, int], user: str | None) -> None:
        self._address = address
        self._user = user
        self._link: Link | None = None
        self._correlation_ids = itertools.count(1)

    def ask(self, key: ApiKey, values: Mapping[str, Any], version: int | None = None) -> dict[str, Any]:
        """The answer. ClosedError when the connection ends instead; the next question makes a new one."""
        at = APIS[key].max_version if version is None else version
        try:
            return self._exchange(self._connected(), key, at, values)
        except (ClosedError, SilentError):
            self.close()
            raise

    def close(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _connected(self) -> Link:
        if self._link is None:
            link = Link(self._address)
            if self._user is not None:
                self._authenticate(link, self._user)
            self._link = link
        return self._link

    def _authenticate(self, link: Link, user: str) -> None:
        shaken = self._exchange(link, ApiKey.SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})
        assert shaken["error_code"] == 0, shaken
        told = f"\0{user}\0{password_of(user)}".encode()
        answer = self._exchange(link, ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": told})
        assert answer["error_code"] == 0, f"{user}: {answer['error_message']}"

    def _exchange(self, link: Link, key: ApiKey, version: int, values: Mapping[str, Any]) -> dict[str, Any]:
        correlation_id = next(self._correlation_ids)
        tags = b"\0" if request_header_version(key, version) == 2 else b""
        header = struct.pack(">hhih", key, version, correlation_id, 6) + b"matrix" + tags
        link.send(header + messages.encode(load_request_schema(key, version), values))
        frame = link.receive()
        (answered_id,) = struct.unpack_from(">i", frame)
        assert answered_id == correlation_id, f"{key.name} v{version}: answer {answered_id} to request {correlation_id}"
        position = messages.skip_tags(frame, 4) if response_header_version(key, version) == 1 else 4
        return messages.decode(load_response_schema(key, version), frame, position)
