"""One toxiproxy server as a process, driven by `toxiproxy-python`, which has no types: they end in this module.

The driver keeps the server's address in attributes of its class, so each server here has a subclass of its own.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import requests
from toxiproxy.api import APIConsumer
from toxiproxy.exceptions import InvalidToxic, NotFound, ProxyExists

from ...client import clock
from ...client.cached_programs import TOXIPROXY, find_program
from ...local.child_processes import start_child
from ...local.errors import ClusterError
from ...local.local_node import HOST
from .routes import Route

_START_TIMEOUT_S: Final = 20.0
_STOP_TIMEOUT_S: Final = 10.0
_CALL_TIMEOUT_S: Final = 10.0
# The server is on this machine, whatever the environment says of proxies for the web.
_OPTIONS: Final[Mapping[str, Any]] = {
    "timeout": _CALL_TIMEOUT_S,
    "proxies": {"http": None, "https": None, "all": None},
}
_ERRORS: Final = (requests.RequestException, InvalidToxic, NotFound, ProxyExists)


class Toxiproxy:
    """Use in a `with` statement. Raises ClusterError where the server is missing, ends, or refuses what it is told.

    Safe to share between threads that speak of different proxies.
    """

    def __init__(self, port: int, log: Path) -> None:
        """Nothing is started yet. `port` is for its HTTP API; `log` takes what it prints."""
        self._api: Any = type("Api", (APIConsumer,), {"host": HOST, "port": port})
        self._port = port
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def begin_start(self) -> None:
        """Starts the process and returns at once; `populate` waits for it."""
        program = find_program(TOXIPROXY)
        if program is None:
            raise ClusterError(
                f"links between nodes are broken by {TOXIPROXY}, which is neither on the PATH nor built yet: "
                "`penstock chaos install-toxiproxy` builds it"
            )
        self._log.parent.mkdir(parents=True, exist_ok=True)
        try:
            with self._log.open("ab") as log:
                self._process = start_child(
                    [program, "-host", HOST, "-port", str(self._port)],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    # Its log has each connection otherwise.
                    env={"LOG_LEVEL": "error"},
                    start_new_session=True,
                )
        except OSError as error:
            raise ClusterError(f"{program} could not be started: {error}") from error

    def populate(self, routes: Iterable[Route]) -> None:
        """Makes all proxies in one call, once the server answers."""
        wanted = [
            {
                "name": route.name,
                "listen": f"{HOST}:{route.port}",
                "upstream": f"{HOST}:{route.upstream_port}",
                "enabled": True,
            }
            for route in routes
        ]
        self._wait_listening()
        self._post("/populate", wanted)

    def set_enabled(self, name: str, *, is_enabled: bool) -> None:
        """A proxy that is not enabled has no connections and refuses new ones."""
        self._post(f"/proxies/{name}", {"enabled": is_enabled})

    def add_toxic(self, name: str, toxic: str, kind: str, stream: str, attributes: Mapping[str, int]) -> None:
        """`toxic` is its name, `stream` is upstream (requests) or downstream (responses)."""
        told = {"name": toxic, "type": kind, "stream": stream, "toxicity": 1.0, "attributes": dict(attributes)}
        self._post(f"/proxies/{name}/toxics", told)

    def remove_toxic(self, name: str, toxic: str) -> None:
        self._check(
            f"take {toxic} from {name}", lambda: self._api.delete(f"/proxies/{name}/toxics/{toxic}", **_OPTIONS)
        )

    def stop(self) -> None:
        """Ends the process; every connection through it is closed."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def __enter__(self) -> Self:
        self.begin_start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _wait_listening(self) -> None:
        def is_listening() -> bool:
            if self._process is None or self._process.poll() is not None:
                said = self._log.read_text(errors="replace").strip().rpartition("\n")[2]
                raise ClusterError(f"{TOXIPROXY} ended before it listened on port {self._port}: {said}")
            try:
                self._api.get("/version", **_OPTIONS)
            except requests.RequestException:
                return False
            return True

        if not clock.wait_until(is_listening, timeout_s=_START_TIMEOUT_S):
            raise ClusterError(f"{TOXIPROXY} did not listen on port {self._port} within {_START_TIMEOUT_S:g} s")

    def _post(self, path: str, told: object) -> None:
        self._check(f"POST {path} {told}", lambda: self._api.post(path, json=told, **_OPTIONS))

    def _check(self, what: str, call: Any) -> None:
        try:
            response = call()
        except _ERRORS as error:
            raise ClusterError(f"{TOXIPROXY} does not {what}: {error}") from error
        # The driver takes other refusals, of a port that is in use for instance, for answers.
        if not response.ok:
            raise ClusterError(f"{TOXIPROXY} does not {what}: {response.text.strip()}")
