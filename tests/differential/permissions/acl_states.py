"""What ACLs there are for one user on one resource: the states of the matrix, by the kind of resource."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any


class Kind(IntEnum):
    """ResourceType of the protocol."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class Operation(IntEnum):
    """AclOperation of the protocol."""

    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


ALLOW, DENY = 3, 2
LITERAL, PREFIXED = 3, 4
ANY_HOST, OWN_HOST, ANOTHER_HOST = "*", "127.0.0.1", "192.0.2.1"
CLUSTER_NAME = "kafka-cluster"

OPERATIONS: dict[Kind, tuple[Operation, ...]] = {
    Kind.TOPIC: (
        *(Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DELETE, Operation.ALTER, Operation.DESCRIBE),
        *(Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS),
    ),
    Kind.GROUP: (
        *(Operation.READ, Operation.DELETE, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS),
    ),
    Kind.CLUSTER: (
        *(Operation.CREATE, Operation.ALTER, Operation.DESCRIBE, Operation.CLUSTER_ACTION),
        *(Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS, Operation.IDEMPOTENT_WRITE),
    ),
    Kind.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE, Operation.TWO_PHASE_COMMIT),
    Kind.DELEGATION_TOKEN: (Operation.DESCRIBE,),
    Kind.USER: (Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS),
}
"""What Apache Kafka 4.3.1 lets an ACL on such a resource say, but for ALL."""


class Pattern(Enum):
    """Where an ACL is put, so that it concerns a resource, or does so barely not."""

    NAME = "its name"
    PREFIX = "a prefix of its name"
    EVERYTHING = "*"
    LONGER = "what its name is a prefix of"
    SHORTER = "exactly a prefix of its name"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One ACL of a state, without the resource that it is for. No principal: the user's own."""

    operation: Operation = Operation.ALL
    permission: int = ALLOW
    pattern: Pattern = Pattern.NAME
    host: str = ANY_HOST
    principal: str | None = None

    def binding(self, kind: Kind, name: str, user: str) -> dict[str, Any]:
        """As CreateAcls takes it."""
        names = {
            Pattern.NAME: name,
            Pattern.PREFIX: name[:-1],
            Pattern.EVERYTHING: "*",
            Pattern.LONGER: f"{name}-",
            Pattern.SHORTER: name[:-1],
        }
        return {
            "resource_type": int(kind),
            "resource_name": names[self.pattern],
            "resource_pattern_type": PREFIXED if self.pattern in (Pattern.PREFIX, Pattern.LONGER) else LITERAL,
            "principal": self.principal or f"User:{user}",
            "host": self.host,
            "operation": int(self.operation),
            "permission_type": self.permission,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class AclState:
    """The entries for a user. `is_shared`: they concern other users as well, so the resource must be his alone."""

    name: str
    entries: tuple[Entry, ...]
    is_super_user: bool = False

    @property
    def is_shared(self) -> bool:
        return any(entry.principal == "User:*" for entry in self.entries)


NOTHING = AclState(name="nothing", entries=())


def states_of(kind: Kind) -> tuple[AclState, ...]:
    """In the order in which a reader wants them."""
    return tuple(_states(kind))


def _states(kind: Kind) -> Iterator[AclState]:
    everything = Entry()
    denied = Entry(permission=DENY)
    yield NOTHING
    for operation in OPERATIONS[kind]:
        yield AclState(name=operation.name, entries=(Entry(operation=operation),))
    yield AclState(name="ALL", entries=(everything,))
    for operation in OPERATIONS[kind]:
        refused = Entry(operation=operation, permission=DENY)
        yield AclState(name=f"ALL, not {operation.name}", entries=(everything, refused))
    yield AclState(name="ALL, not ALL", entries=(everything, denied))
    yield AclState(name="ALL from here", entries=(Entry(host=OWN_HOST),))
    yield AclState(name="ALL from elsewhere", entries=(Entry(host=ANOTHER_HOST),))
    yield AclState(name="ALL, not from elsewhere", entries=(everything, Entry(permission=DENY, host=ANOTHER_HOST)))
    yield AclState(name="ALL for another", entries=(Entry(principal="User:another"),))
    yield AclState(name="nothing, as a super user", entries=(denied,), is_super_user=True)
    if kind is Kind.CLUSTER:
        # There is one cluster, of one name: no patterns, and an ACL for all users would concern all other cells.
        return
    yield AclState(name="ALL by prefix", entries=(Entry(pattern=Pattern.PREFIX),))
    yield AclState(name="ALL by *", entries=(Entry(pattern=Pattern.EVERYTHING),))
    refused_by_prefix = Entry(pattern=Pattern.PREFIX, permission=DENY)
    yield AclState(name="ALL by *, not by prefix", entries=(Entry(pattern=Pattern.EVERYTHING), refused_by_prefix))
    refused_by_any = Entry(pattern=Pattern.EVERYTHING, permission=DENY)
    yield AclState(name="ALL, not by *", entries=(everything, refused_by_any))
    yield AclState(name="ALL for everyone", entries=(Entry(principal="User:*"),))
    yield AclState(name="ALL for everyone, not for him", entries=(Entry(principal="User:*"), denied))
