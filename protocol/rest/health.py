"""Bodies of `/health` and `/ready`."""

from typing import Literal, TypeAlias

from msgspec import Struct

NodeState: TypeAlias = Literal["starting", "running", "stopping"]


class Reason(Struct, kw_only=True):
    """One thing that is wrong: `kind` is for programs, `sentence` for people.

    Where it is about partitions, `count` is how many, and `partitions` names the first few as topic-index.
    """

    kind: str
    sentence: str
    count: int | None = None
    partitions: list[str] = []


class Health(Struct, kw_only=True):
    """How a node is. `is_ok` is false where `reasons` is not empty. `warnings` do not change it."""

    node_id: int
    is_ok: bool
    state: NodeState
    reasons: list[Reason]
    warnings: list[Reason] = []


class ReadyQuery(Struct, kw_only=True):
    """`caught_up` asks for more: a node whose own replicas are not all in sync is not ready."""

    caught_up: bool = False
