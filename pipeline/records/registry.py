"""Asks a schema registry for schemas: `GET /schemas/ids/{id}` and `GET /subjects/{subject}/versions/{version}`.

That is all the pipeline needs of one; the client of confluent_kafka would bring six more packages to each executor.
"""

import base64
import http.client
import ssl
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import msgspec

from .errors import RegistryError

_TIMEOUT_S: Final = 10.0
_ATTEMPTS: Final = 3
_PAUSE_S: Final = 0.5
"""After the first attempt; twice as long after each further one."""
_CACHED: Final = 1_000
"""Schemas of one process. A topic has a handful; an id never changes its schema, so they are never asked for again."""
_MAX_BYTES: Final = 10_000_000
_MEDIA_TYPE: Final = "application/vnd.schemaregistry.v1+json, application/json"


class Reference(msgspec.Struct, frozen=True):
    """Another schema that one imports, by the name that it is imported under."""

    name: str
    subject: str
    version: int


class StoredSchema(msgspec.Struct, frozen=True):
    """As a registry answers. Of Protobuf, `schema` is a file descriptor in base64."""

    schema: str
    schemaType: str = "AVRO"  # noqa: N815
    references: tuple[Reference, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    url: str
    user_info: str = field(default="", repr=False)
    """`user:password`, of HTTP's basic authentication."""
    ca_file: str = ""

    def by_id(self, schema_id: int) -> StoredSchema | None:
        """None: the registry has no such id, which is asked again the next time. Raises RegistryError."""
        try:
            return _fetched(self, f"/schemas/ids/{schema_id}")
        except _NotThereError:
            return None

    def version(self, subject: str, version: int) -> StoredSchema:
        """Raises RegistryError."""
        return self._of_subject(subject, str(version))

    def newest(self, subject: str) -> StoredSchema:
        """Not kept: it may have changed the next time. Raises RegistryError."""
        return self._of_subject(subject, "latest")

    def _of_subject(self, subject: str, version: str) -> StoredSchema:
        path = f"/subjects/{urllib.parse.quote(subject, safe='')}/versions/{version}"
        try:
            return _fetch(self, path) if version == "latest" else _fetched(self, path)
        except _NotThereError:
            raise RegistryError(f"the schema registry {self.url} has no version {version} of {subject}") from None


def registry_of(properties: Mapping[str, str]) -> Registry:
    """Of settings that are checked."""
    return Registry(
        url=properties["url"].rstrip("/"),
        user_info=properties.get("basic.auth.user.info", ""),
        ca_file=properties.get("ssl.ca.location", ""),
    )


class _NotThereError(Exception):
    pass


@lru_cache(maxsize=_CACHED)
def _fetched(registry: Registry, path: str) -> StoredSchema:
    """Errors are not kept."""
    return _fetch(registry, path)


def _fetch(registry: Registry, path: str) -> StoredSchema:
    """Raises RegistryError, or _NotThereError for HTTP's 404."""
    # Serialized is what Protobuf's library can read; registries ignore it for other types.
    address = f"{registry.url}{path}?format=serialized"
    headers = {"Accept": _MEDIA_TYPE}
    if registry.user_info:
        headers["Authorization"] = "Basic " + base64.b64encode(registry.user_info.encode()).decode()
    try:
        answer = _asked(urllib.request.Request(address, headers=headers), registry)
        return msgspec.json.decode(answer, type=StoredSchema)
    except msgspec.DecodeError as error:
        raise RegistryError(f"{registry.url}{path} answers with no schema: {error}") from None


def _asked(request: urllib.request.Request, registry: Registry) -> bytes:
    context = _trust(registry) if request.type == "https" else None
    for attempt in range(_ATTEMPTS):
        is_last = attempt == _ATTEMPTS - 1
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S, context=context) as response:
                answer: bytes = response.read(_MAX_BYTES)
                return answer
        except urllib.error.HTTPError as error:
            with error:
                if error.code == 404:
                    raise _NotThereError from None
                if error.code < 500 or is_last:
                    where = request.full_url.partition("?")[0]
                    raise RegistryError(f"{where} answers {error.code} {error.reason}") from None
        except (OSError, http.client.HTTPException) as error:
            cause = error.reason if isinstance(error, urllib.error.URLError) else error
            if isinstance(cause, ssl.SSLCertVerificationError):
                # It shows the same certificate the next time.
                trusted = registry.ca_file or "the authorities of this machine"
                raise RegistryError(
                    f"the certificate of the schema registry {registry.url} was refused: {cause.verify_message} "
                    f"(trusted are {trusted}; ssl.ca.location names another file)"
                ) from None
            if is_last:
                raise RegistryError(
                    f"the schema registry {registry.url} does not answer ({cause}), asked {_ATTEMPTS} times"
                ) from None
        threading.Event().wait(_PAUSE_S * 2**attempt)
    raise AssertionError("the last attempt returns or raises")


def _trust(registry: Registry) -> ssl.SSLContext:
    """Raises RegistryError."""
    try:
        return ssl.create_default_context(cafile=registry.ca_file or None)
    except OSError as error:
        raise RegistryError(
            f"ssl.ca.location of the registry is {registry.ca_file}: no certificates can be read from it ({error})"
        ) from None
