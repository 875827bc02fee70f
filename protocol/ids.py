"""The ids of a cluster: each a type of its own for the type checker, and its plain value when the code runs.

An id is made where its value enters (a request, a record, a property, a file) or where its number is given out; behind
that, signatures and fields name its type.
"""

from typing import NewType
from uuid import UUID

NodeId = NewType("NodeId", int)
"""A node's `node.id`. Broker ids, controller ids, voter ids and replica ids are all of this type: they are one space of
ids, and one node may be all of these."""

NO_NODE = NodeId(-1)
"""Where the protocol has no field for "none": no leader, no broker."""

TopicId = NewType("TopicId", UUID)
"""One topic between its creation and its deletion (KIP-516)."""
