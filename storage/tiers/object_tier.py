"""Object stores behind a URL: `file:`, `s3:`, `gs:`, `az:`, by way of the library obstore.

Credentials and regions are those that the store's own tools take from the environment (AWS_…, GOOGLE_…, AZURE_…).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from importlib.metadata import entry_points
from importlib.util import find_spec
from itertools import chain
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from ...protocol.batches import Buffer
from ...protocol.errors import ConfigError
from ..disk.files import DiskFiles
from .rules.tier_store import MissingObjectError, TierError, TierStore

if TYPE_CHECKING:
    from obstore.store import ObjectStore

SCHEMES: Final = ("file", "s3", "gs", "az")
PLUGIN_GROUP: Final = "penstock.tiers"
"""Entry points of this group, by the scheme of their URLs: called with the URL, they return a `TierStore`."""
_LIBRARY: Final = "obstore"
_PART_BYTES: Final = 8 * 1024 * 1024
_UPLOADS_MAX: Final = 4
"""Parts of one object on their way at a time: with the copier's threads, what copying may take of memory."""
_RETRIES: Final = 3
_RETRY_TIMEOUT: Final = timedelta(seconds=10)
"""Of a call that fails; the copier tries again later."""
_REQUEST_TIMEOUT: Final = "30s"
_CONNECT_TIMEOUT: Final = "5s"
_ENDPOINTS: Final = {
    "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "gs": ("GOOGLE_BASE_URL",),
    "az": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
}
"""Variables of the environment in which a store of one's own is named, by the scheme of its URLs."""


def open_tier(url: str) -> TierStore:
    """The store of `remote.log.storage.url`. ConfigError, one sentence."""
    scheme = urlsplit(url).scheme
    for plugin in entry_points(group=PLUGIN_GROUP, name=scheme):
        make: Callable[[str], TierStore] = plugin.load()
        return make(url)
    if scheme not in SCHEMES:
        raise ConfigError(
            f"remote.log.storage.url is {url!r}, but begins with one of {', '.join(f'{one}:' for one in SCHEMES)} or "
            f"has a store of its own, an entry point {scheme!r} of {PLUGIN_GROUP}."
        )
    if find_spec(_LIBRARY) is None:
        raise ConfigError(
            f"remote.log.storage.url is {url!r}, but the library {_LIBRARY} is missing: pip install "
            "'penstock-broker[tiers]'."
        )
    return ObjectTier(url)


class ObjectTier:
    """A `TierStore`."""

    def __init__(self, url: str) -> None:
        """ConfigError when the library cannot make sense of the URL or of what the environment says."""
        from obstore.exceptions import BaseError
        from obstore.store import LocalStore, from_url

        self.url = url
        parts = urlsplit(url)
        self._store: ObjectStore
        self._folder: _Folder | None = None
        try:
            if parts.scheme == "file":
                path = unquote(parts.path)
                self._folder = _Folder(path)
                made = self._folder.missing()
                self._store = LocalStore(path, mkdir=True)
                self._folder.sync_names(made)
            else:
                is_plain = _has_plain_endpoint(parts.scheme)
                self._store = from_url(
                    url,
                    client_options={
                        "timeout": _REQUEST_TIMEOUT,
                        "connect_timeout": _CONNECT_TIMEOUT,
                        "allow_http": is_plain,
                    },
                    retry_config={"max_retries": _RETRIES, "retry_timeout": _RETRY_TIMEOUT},
                )
        except (BaseError, OSError, ValueError) as error:
            raise ConfigError(f"remote.log.storage.url {url!r} cannot be used: {error}") from error

    def put(self, key: str, parts: bytes | Iterable[Buffer]) -> None:
        from obstore import put

        with _tier_errors(key):
            first, following = (parts, None) if isinstance(parts, bytes) else _begin(iter(parts))
            if following is None:
                # In several parts an object is three calls at least, each of which is paid for.
                put(self._store, key, first, use_multipart=False)
            else:
                content = chain((first,), following)
                put(self._store, key, content, chunk_size=_PART_BYTES, max_concurrency=_UPLOADS_MAX)
            if self._folder is not None:
                self._folder.sync(key)

    def get_range(self, key: str, start: int, size: int) -> Buffer:
        from obstore import get_range

        with _tier_errors(key):
            return memoryview(get_range(self._store, key, start=start, length=size))

    def delete(self, keys: Sequence[str]) -> None:
        from obstore import delete

        for key in keys:
            try:
                with _tier_errors(key):
                    delete(self._store, key)
            except MissingObjectError:
                pass

    def keys(self, prefix: str) -> Iterator[str]:
        from obstore import list as list_objects

        with _tier_errors(prefix):
            for page in list_objects(self._store, prefix.rstrip("/") or None):
                yield from (found["path"] for found in page)


class _Folder:
    """What `file:` has of a store: that an object lasts once it is put. The library writes it and syncs nothing."""

    def __init__(self, path: str) -> None:
        self._path = path.rstrip("/")
        self._files = DiskFiles()

    def missing(self) -> list[str]:
        """It and the folders above it that are not there."""
        path, found = self._path, []
        while path and not self._files.exists(path):
            found.append(path)
            path = path.rpartition("/")[0]
        return found

    def sync_names(self, folders: Sequence[str]) -> None:
        """Of folders that were made. OSError."""
        for path in folders:
            self._files.sync_directory(path.rpartition("/")[0] or "/")

    def sync(self, key: str) -> None:
        """The object, and the names that lead to it. OSError."""
        path = f"{self._path}/{key}"
        file = self._files.open(path)
        try:
            file.sync()
        finally:
            # Else the next sync of the key could be of the file that was there before.
            file.close()
        while path != self._path:
            path = path.rpartition("/")[0]
            self._files.sync_directory(path or "/")


def _begin(parts: Iterator[Buffer]) -> tuple[bytes, Iterator[Buffer] | None]:
    """The first part of an upload, and what follows; None where that was all."""
    taken: list[Buffer] = []
    size_bytes = 0
    for part in parts:
        taken.append(part)
        size_bytes += len(part)
        if size_bytes > _PART_BYTES:
            return b"".join(taken), parts
    return b"".join(taken), None


def _has_plain_endpoint(scheme: str) -> bool:
    """Whether the environment names an endpoint without TLS, as that of a server beside the brokers."""
    return any(os.environ.get(name, "").startswith("http://") for name in _ENDPOINTS.get(scheme, ()))


@contextmanager
def _tier_errors(key: str) -> Iterator[None]:
    from obstore.exceptions import BaseError, NotFoundError

    try:
        yield
    except (NotFoundError, FileNotFoundError) as error:
        raise MissingObjectError(f"{key}: {_first_line(error)}") from error
    except (BaseError, OSError, ValueError) as error:
        raise TierError(f"{key}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
