"""Rules for when a replica with a damaged log may be repaired from its leader.

    state     entered by                                            left by
    sound     creation                                              a check that finds damage; damage at opening
    damaged   these; the broker reports the replica to the          a check that finds no damage; metadata by which
              controller as DIRECTORY_LOST, repeatedly              `may_repair` is True
    repaired  that: the log is truncated at the damage              reopening the log: the replica follows, sound

While the controller has no replacement, the replica stays damaged and its log is not touched: it may be the last one
with the records. A running replica keeps serving the batches that it can read.
"""

from typing import NamedTuple

from ....protocol.ids import NodeId
from ....quorum.metadata.image import PartitionRegistration
from ....quorum.metadata.records import DIRECTORY_LOST, NO_LEADER


class FoundDamage(NamedTuple):
    """The `size` bytes of batches from `offset` on contain corrupt or unreadable ones."""

    offset: int
    size: int


def is_replaceable(registration: PartitionRegistration, broker_id: NodeId) -> bool:
    """True if another replica is in the ISR or ELR and may have all acknowledged records: the controller can elect it.

    Otherwise the damaged replica, if running, is better than the lagging one that an unclean election would take.
    """
    return any(replica != broker_id for replica in (*registration.isr, *registration.elr))


def may_repair(registration: PartitionRegistration, broker_id: NodeId, *, is_hosted: bool) -> bool:
    """True if this replica's records may be discarded: another replica leads, and this one is not in ISR or ELR.

    Then all acknowledged records are on the ISR, and this replica cannot be elected. The leader may be about to add a
    hosted replica to the ISR, so its directory must be DIRECTORY_LOST in the metadata: such a replica does not join
    before its broker assigns it to a directory again.
    """
    return (
        registration.leader not in (NO_LEADER, broker_id)
        and broker_id not in registration.isr
        and broker_id not in registration.elr
        and (not is_hosted or registration.directory_of(broker_id) == DIRECTORY_LOST)
    )
