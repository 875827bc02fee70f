"""What is wrong with each link at the moment, as toxics and switches of the proxies that it goes through."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, Protocol, get_args

from ...local.errors import ClusterError
from .link import CutMode, Link, Stream
from .routes import Route, Routes

# Until the link heals; the toxic counts in milliseconds.
_HELD_MS: Final = 24 * 3600 * 1000
_STREAMS: Final[Mapping[Stream, tuple[str, ...]]] = {
    "both": ("upstream", "downstream"),
    "requests": ("upstream",),
    "responses": ("downstream",),
}


class Toxic(NamedTuple):
    """One of toxiproxy's, for one stream of a proxy."""

    kind: str
    stream: str
    attributes: Mapping[str, int]

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.stream}"


class Proxies(Protocol):
    """What of `Toxiproxy` is used here."""

    def set_enabled(self, name: str, *, is_enabled: bool) -> None: ...
    def add_toxic(self, name: str, toxic: str, kind: str, stream: str, attributes: Mapping[str, int]) -> None: ...
    def remove_toxic(self, name: str, toxic: str) -> None: ...


def cut_toxics(mode: CutMode, stream: Stream) -> tuple[Toxic, ...]:
    """What makes a cut, in the order in which it is added; nothing for a refusal, which is no toxic."""
    streams = _STREAMS[stream]
    if mode == "silence":
        # `timeout` drops what is sent, and `slow_close` behind it the end of the connection, until the link heals.
        drops = tuple(Toxic("timeout", one, {"timeout": 0}) for one in streams)
        return drops + tuple(Toxic("slow_close", one, {"delay": _HELD_MS}) for one in streams)
    if mode == "reset":
        return tuple(Toxic("reset_peer", one, {"timeout": 0}) for one in streams)
    return ()


class LinkFaults:
    """Of one cluster. A route is open when neither its link is cut by refusal nor its target's process is down.

    Not safe to share between threads.
    """

    def __init__(self, routes: Routes, proxies: Proxies) -> None:
        self._routes = routes
        self._proxies = proxies
        self._toxics: dict[str, list[Toxic]] = {}
        self._cut: dict[Link, CutMode] = {}
        self._closed: set[str] = set()
        self._down: set[str] = set()

    def is_cut(self, link: Link) -> bool:
        return link in self._cut

    def cut(self, links: Iterable[Link], mode: CutMode, stream: Stream = "both") -> None:
        """Nothing comes through these links any more; what was wrong with them before is replaced.

        `silence`: connections stand, new ones too, and what is sent is lost; they end when the link heals, so that no
        response comes late to the wrong request. `reset`: connections are closed by the next byte, new ones are reset.
        `refusal`: all connections are closed, new ones refused; it has no streams.
        """
        if mode not in get_args(CutMode):
            raise ClusterError(f"a link is cut by {', '.join(get_args(CutMode))}, not {mode!r}")
        if mode == "refusal" and stream != "both":
            raise ClusterError(f"a refusal closes whole connections: it cannot take away only {stream}")
        routes = self._found(links)
        self._heal_routes(routes, stay_closed=mode == "refusal")
        for route in routes:
            self._cut[route.link] = mode
            self._add(route, cut_toxics(mode, stream))
            self._switch(route)

    def slow(self, links: Iterable[Link], latency_ms: int, jitter_ms: int = 0) -> None:
        """Each message takes so much longer, in both directions: a round trip twice as much."""
        attributes = {"latency": latency_ms, "jitter": jitter_ms}
        self._add_to_all(links, lambda stream: Toxic("latency", stream, attributes))

    def limit(self, links: Iterable[Link], kilobytes_s: int) -> None:
        """Each direction of each connection carries no more than that."""
        self._add_to_all(links, lambda stream: Toxic("bandwidth", stream, {"rate": kilobytes_s}))

    def end_after(self, links: Iterable[Link], size_bytes: int) -> None:
        """Each connection ends once it has carried so many bytes in one direction, perhaps within a message."""
        self._add_to_all(links, lambda stream: Toxic("limit_data", stream, {"bytes": size_bytes}))

    def reset(self, links: Iterable[Link]) -> None:
        """Closes all connections at once; new ones are made as before."""
        for route in self._found(links):
            if route.name not in self._closed:
                self._close(route, is_closed=True)
                # Where this fails, healing opens it.
                self._close(route, is_closed=False)

    def heal(self, links: Iterable[Link] | None = None) -> None:
        """These links, or all, are as at the beginning."""
        self._heal_routes(self._found(self._routes.links if links is None else links))

    def on_node_down(self, node_id: int) -> None:
        """The process is gone, so its ports refuse; without this the proxies would still accept for it."""
        self._down.add(str(node_id))
        for route in self._routes.to(node_id):
            self._switch(route)

    def on_node_up(self, node_id: int) -> None:
        self._down.discard(str(node_id))
        for route in self._routes.to(node_id):
            self._switch(route)

    def _found(self, links: Iterable[Link]) -> tuple[Route, ...]:
        found: list[Route] = []
        for link in links:
            routes = self._routes.of(link)
            if not routes:
                raise ClusterError(
                    f"this cluster has no link {link}: there are {', '.join(map(str, self._routes.links))}"
                )
            found += routes
        return tuple(found)

    def _add_to_all(self, links: Iterable[Link], toxic: Callable[[str], Toxic]) -> None:
        for route in self._found(links):
            for stream in _STREAMS["both"]:
                one = toxic(stream)
                self._remove(route, lambda known: known.name == one.name)  # noqa: B023 - called here
                self._add(route, (one,))

    def _add(self, route: Route, toxics: Iterable[Toxic]) -> None:
        for toxic in toxics:
            self._proxies.add_toxic(route.name, toxic.name, toxic.kind, toxic.stream, toxic.attributes)
            self._toxics.setdefault(route.name, []).append(toxic)

    def _remove(self, route: Route, is_meant: Callable[[Toxic], bool] = lambda _: True) -> None:
        # The last first: toxiproxy counts the toxics of a connection by their places.
        for toxic in reversed(tuple(self._toxics.get(route.name, ()))):
            if is_meant(toxic):
                self._proxies.remove_toxic(route.name, toxic.name)
                self._toxics[route.name].remove(toxic)

    def _heal_routes(self, routes: Iterable[Route], *, stay_closed: bool = False) -> None:
        for route in routes:
            self._cut.pop(route.link, None)
            self._remove(route)
            if not stay_closed:
                self._switch(route)

    def _switch(self, route: Route) -> None:
        is_closed = self._cut.get(route.link) == "refusal" or route.link.target in self._down
        if is_closed != (route.name in self._closed):
            self._close(route, is_closed=is_closed)

    def _close(self, route: Route, *, is_closed: bool) -> None:
        self._proxies.set_enabled(route.name, is_enabled=not is_closed)
        (self._closed.add if is_closed else self._closed.discard)(route.name)
