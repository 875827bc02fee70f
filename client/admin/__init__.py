"""A typed client of the HTTP administration, blocking (`Admin`) and asynchronous (`AsyncAdmin`).

    with Admin("http://127.0.0.1:8083") as admin:
        admin.create_kafka_topic(CreateTopic(topic_name="orders", partitions_count=6))

One method for each operation, named as in the OpenAPI document; bodies and answers are the classes of `protocol/rest`.
`credentials=AdminCredentials.password("ada", "…")` proves who asks; its `tls` is what https is checked with. What the
node refuses is raised as AdminProblem, a node that cannot be reached as AdminUnreachable.
"""

from typing import TYPE_CHECKING, Any

from .blocking_admin import Admin
from .credentials import AdminCredentials
from .errors import AdminError, AdminProblem, AdminUnreachable

if TYPE_CHECKING:
    from .async_admin import AsyncAdmin

__all__ = ["Admin", "AdminCredentials", "AdminError", "AdminProblem", "AdminUnreachable", "AsyncAdmin"]


def __getattr__(name: str) -> Any:
    # aiohttp takes longer to load than most commands to run.
    if name != "AsyncAdmin":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .async_admin import AsyncAdmin

    return AsyncAdmin
