"""A node whose clients are who their listener says, started as `penstock start` is.

Some of Apache Kafka's tests bring a class for that (`principal.builder.class`): GroupAuthorizerIntegrationTest, to try
ACLs of principals that are no users. Penstock takes no classes of others, so the one place where it says who an unknown
client is says it here as that class does, by `CONFORMANCE_PRINCIPALS` or as of groups.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any, Final

from penstock import cli
from penstock.broker.network import connection
from penstock.broker.network.request import ANONYMOUS, RequestContext

VARIABLE: Final = "CONFORMANCE_PRINCIPALS"
GROUPS: Final = {"BROKER": "Group:broker", "CONTROLLER": "Group:broker", "EXTERNAL": "Group:client"}
PRINCIPALS: Final[Mapping[str, str]] = json.loads(os.environ.get(VARIABLE, "null")) or GROUPS


def context_of_group(*, listener_name: str, **others: Any) -> RequestContext:
    """A connection's context, in the name of its listener's group."""
    told = {**others, "principal": PRINCIPALS.get(listener_name, others.get("principal", ANONYMOUS))}
    return RequestContext(listener_name=listener_name, **told)


if __name__ == "__main__":
    vars(connection)["RequestContext"] = context_of_group
    cli.main(["start", *sys.argv[1:]], prog_name="penstock")
