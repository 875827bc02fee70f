"""Query of `/v1/events`."""

from msgspec import Struct


class EventsQuery(Struct, kw_only=True):
    """`since` is the id of the last event that the client has; the header Last-Event-ID is stronger."""

    since: str | None = None
