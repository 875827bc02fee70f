"""The keys of tokens' issuers: read from a file or a URL at the start, and again while the node runs.

Kafka: `RefreshingHttpsJwks`. A token with a key that is not known makes the set be read at once, so that a provider may
rotate its keys at any time; made-up tokens cannot cause that more than once in `EXPEDITED_S`. What cannot be read
leaves the keys that are there.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Final
from urllib.parse import unquote, urlsplit

from ...protocol.errors import ConfigError
from ...storage.disk.files import Files
from ..cluster.tls_contexts import TlsContexts
from ..configuration.bearer_config import BearerConfig
from ..configuration.tls_config import TlsConfig
from .rules.bearer import VerifyToken
from .rules.token_verifier import VerificationKey, load_library, read_key_set, token_verifier

KEY_SET_BYTES_MAX: Final = 1024 * 1024
EXPEDITED_S: Final = 10.0
FILE_CHECK_S: Final = 5.0
"""As the files of certificates."""
TIMEOUT_S: Final = 10.0

logger = logging.getLogger(__name__)


class KeySets:
    """Of all listeners. `load` once, then `watch`."""

    def __init__(self, files: Files, loop: asyncio.AbstractEventLoop, wall_clock_ms: Callable[[], int]) -> None:
        self._files = files
        self._loop = loop
        self._wall_clock_ms = wall_clock_ms
        self._sets: dict[tuple[str, TlsConfig | None], KeySet] = {}
        self._is_asked = asyncio.Event()

    def verifier(self, config: BearerConfig) -> VerifyToken:
        """Raises ConfigError when the library is not installed, or the certificates for https cannot be loaded."""
        load_library()
        assert config.jwks_url is not None, "unsigned tokens need no keys"
        source = (config.jwks_url, config.jwks_tls)
        keys = self._sets.get(source)
        if keys is None:
            keys = self._sets[source] = KeySet(config, self._files, self._loop, self._is_asked.set)
            self._is_asked.set()
        return token_verifier(config, keys.keys, keys.expedite, self._wall_clock_ms)

    async def load(self) -> None:
        """Raises ConfigError for a file that is no key set; a URL that does not answer is tried again."""
        for keys in self._sets.values():
            await keys.refresh(is_start=True)

    async def load_again(self) -> None:
        """Reads all of them, whether they are due or not."""
        for keys in self._sets.values():
            await keys.refresh()

    async def watch(self) -> None:
        """Ends when it is cancelled."""
        while True:
            self._is_asked.clear()
            due_s = min((keys.due_s for keys in self._sets.values()), default=self._loop.time() + FILE_CHECK_S)
            with suppress(TimeoutError):
                async with asyncio.timeout(max(due_s - self._loop.time(), 0.0)):
                    await self._is_asked.wait()
            for keys in tuple(self._sets.values()):
                if keys.due_s <= self._loop.time():
                    await keys.refresh()


class KeySet:
    """One, from where it is told."""

    def __init__(
        self, config: BearerConfig, files: Files, loop: asyncio.AbstractEventLoop, on_asked: Callable[[], None]
    ) -> None:
        self._config = config
        self._url = config.jwks_url or ""
        parts = urlsplit(self._url)
        self._path = unquote(parts.path) if parts.scheme == "file" else None
        tls = {} if config.jwks_tls is None else {self._url: config.jwks_tls}
        self._tls = TlsContexts(tls, files, loop)
        self._files = files
        self._loop = loop
        self._on_asked = on_asked
        self._keys: tuple[VerificationKey, ...] = ()
        self._text = b""
        self._failure_count = 0
        self._expedited_s: float | None = None
        self.due_s = loop.time()
        """When it is to be read next."""

    def keys(self) -> tuple[VerificationKey, ...]:
        return self._keys

    def expedite(self) -> None:
        """A key is not there: the set is read at once, but not too often."""
        now_s = self._loop.time()
        if self._expedited_s is None or now_s - self._expedited_s >= EXPEDITED_S:
            self._expedited_s = self.due_s = now_s
            self._on_asked()

    async def refresh(self, *, is_start: bool = False) -> None:
        """Raises ConfigError at the start, for a file."""
        config, now_s = self._config, self._loop.time()
        try:
            text = await self._read()
            if text != self._text:
                self._keys, self._text = read_key_set(text), text
                logger.info("Loaded the keys of tokens: url=%s keys=%d", _shown(self._url), len(self._keys))
            self._failure_count = 0
            interval_s = FILE_CHECK_S if self._path is not None else config.refresh_ms / 1000
        except (OSError, ValueError, TimeoutError) as error:
            if is_start and self._path is not None:
                raise ConfigError(f"The key set of OAUTHBEARER in {self._path} cannot be used: {error}.") from error
            if self._failure_count == 0:
                logger.warning(
                    "Failed to load the keys of tokens, %d stay: url=%s reason=%s",
                    len(self._keys),
                    _shown(self._url),
                    error,
                )
            backoff_ms = min(config.backoff_ms << min(self._failure_count, 30), config.backoff_ms_max)
            self._failure_count += 1
            interval_s = backoff_ms / 1000
        self.due_s = now_s + interval_s

    async def _read(self) -> bytes:
        if self._path is not None:
            return await self._loop.run_in_executor(None, self._read_file, self._path)
        await self._tls.refresh()
        return await _get(self._url, self._tls.client(self._url)())

    def _read_file(self, path: str) -> bytes:
        text = self._files.read(path)
        if len(text) > KEY_SET_BYTES_MAX:
            raise ValueError(f"it has more than {KEY_SET_BYTES_MAX} bytes")
        return text


async def _get(url: str, tls: ssl.SSLContext | None) -> bytes:
    # A node without such a listener does not load it.
    import aiohttp

    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT_S)) as session,
            session.get(url, allow_redirects=False, ssl=True if tls is None else tls) as response,
        ):
            if response.status != 200:
                raise ValueError(f"HTTP status {response.status}")
            text = await response.content.read(KEY_SET_BYTES_MAX + 1)
            while len(text) <= KEY_SET_BYTES_MAX and (more := await response.content.read(KEY_SET_BYTES_MAX)):
                text += more
    except aiohttp.ClientError as error:
        raise OSError(str(error)) from error
    if len(text) > KEY_SET_BYTES_MAX:
        raise ValueError(f"it has more than {KEY_SET_BYTES_MAX} bytes")
    return text


def _shown(url: str) -> str:
    """Without what may be a secret: user, password, query."""
    parts = urlsplit(url)
    port = "" if parts.port is None else f":{parts.port}"
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"
