"""What goes wrong when a node is asked over HTTP."""

from __future__ import annotations

from ...protocol.errors import ErrorCode
from ...protocol.rest.problem import Problem


class AdminError(Exception):
    """Of all errors of the administration."""


class AdminUnreachable(AdminError):  # noqa: N818 - what it says of the node
    """No node took the connection, or the answer was lost: then a write may or may not have been done."""


class AdminProblem(AdminError):  # noqa: N818 - RFC 9457's word
    """A node's refusal: `status` of HTTP, `error` of Kafka where it is one of Kafka's, and a sentence."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem

    @property
    def status(self) -> int:
        return self.problem.status

    @property
    def error(self) -> ErrorCode | None:
        """None for what HTTP itself refuses."""
        return ErrorCode.__members__.get(self.problem.title)

    def __str__(self) -> str:
        return f"{self.problem.title}: {self.problem.detail}"
