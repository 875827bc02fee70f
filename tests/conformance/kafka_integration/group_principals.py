"""A node whose clients are who their listener says, started as `penstock start` is.

Apache Kafka's GroupAuthorizerIntegrationTest brings a class for that (`principal.builder.class`), to try ACLs of
principals that are no users. Penstock takes no classes of others, so the one place where it says who an unknown client
is says it here as that class does.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from penstock import cli
from penstock.broker.network import connection
from penstock.broker.network.request import RequestContext

PRINCIPALS: Final = {"BROKER": "Group:broker", "CONTROLLER": "Group:broker", "EXTERNAL": "Group:client"}


def context_of_group(*, listener_name: str, **others: Any) -> RequestContext:
    """A connection's context, in the name of its listener's group."""
    told = {**others, "principal": PRINCIPALS[listener_name]}
    return RequestContext(listener_name=listener_name, **told)


if __name__ == "__main__":
    vars(connection)["RequestContext"] = context_of_group
    cli.main(["start", *sys.argv[1:]], prog_name="penstock")
