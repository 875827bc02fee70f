"""Topics with what they hold, for `penstock topic list --sizes`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from ..terminal import print_json, print_table, say
from ..units import format_bytes, format_count

if TYPE_CHECKING:
    from ...protocol.rest.topic_overview import TopicOverview
    from ..admin import Admin

PAGE_SIZE: Final = 200


def print_topic_sizes(admin: Admin, *, has_internal: bool, as_json: bool) -> None:
    """The largest first. Sizes are those of the leaders' logs; each replica takes as much. Raises AdminError."""
    topics = largest_first(_all_topics(admin, has_internal=has_internal))
    if as_json:
        print_json(
            {
                "topics": [
                    {
                        "name": one.name,
                        "partitions": one.partition_count,
                        "replication_factor": one.replication_factor,
                        "records": one.records,
                        "size_bytes": one.size_bytes,
                        "is_complete": one.is_complete,
                    }
                    for one in topics
                ]
            }
        )
    elif topics:
        print_table(
            ("topic", "partitions", "replication factor", "records", "size"),
            (
                (
                    one.name,
                    one.partition_count,
                    one.replication_factor,
                    None if one.records is None else format_count(one.records),
                    None
                    if one.size_bytes is None
                    else f"{'' if one.is_complete else '≥ '}{format_bytes(one.size_bytes)}",
                )
                for one in topics
            ),
        )
    else:
        say("There are no topics.")


def largest_first(topics: Iterable[TopicOverview]) -> list[TopicOverview]:
    """Those of unknown size are last."""
    return sorted(topics, key=lambda one: (-1 if one.size_bytes is None else one.size_bytes, one.name), reverse=True)


def _all_topics(admin: Admin, *, has_internal: bool) -> Iterator[TopicOverview]:
    token: str | None = None
    while True:
        page = admin.list_topic_overviews(include_internal=has_internal, page_size=PAGE_SIZE, page_token=token)
        yield from page.topics
        token = page.next
        if token is None:
            return
