"""Query of `/v1/events`."""

from msgspec import Struct


class EventsQuery(Struct, kw_only=True):
    """`since` is the id of the last event that the client has; the header Last-Event-ID is stronger.

    Without `follow` the answer ends with the newest event; it begins with the oldest one that is remembered, or behind
    `since`.
    """

    since: str | None = None
    follow: bool = True
