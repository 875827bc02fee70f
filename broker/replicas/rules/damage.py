"""When a replica whose log is not what was written may be repaired from its leader.

    state     entered by                                            left by
    sound     creation                                              a check that finds damage; damage at opening
    damaged   these; the controller is told again and again that    a check that finds it whole; the metadata, when they
              the replica is lost                                   say that the replica counts for nothing
    repaired  that: what is from the damage on is cut off           its log is open again: it follows, sound

While the controller has nobody to put in its place, a replica stays damaged and nothing of it is touched: it may be the
last one that has the records. One that is running goes on serving what it can.
"""

from typing import NamedTuple

from ....quorum.metadata.image import PartitionRegistration
from ....quorum.metadata.records import DIRECTORY_LOST, NO_LEADER


class FoundDamage(NamedTuple):
    """Of the batches from `offset` on, `size` bytes, not all could be read as they were written."""

    offset: int
    size: int


def is_replaceable(registration: PartitionRegistration, broker_id: int) -> bool:
    """Whether another replica may have all that was acknowledged: the controller is to let it lead.

    One that runs is worth more than any other that lags, where an unclean election would take that.
    """
    return any(replica != broker_id for replica in (*registration.isr, *registration.elr))


def may_repair(registration: PartitionRegistration, broker_id: int, *, is_hosted: bool) -> bool:
    """Whether what this replica has may be thrown away: another one leads, and nobody relies on this one.

    Then all that was acknowledged is on those in the ISR, and this one cannot be elected. One that is hosted may be
    about to join the ISR by what its leader knows of it, so the metadata must say that it is lost: such a replica does
    not join before its broker says where it is again.
    """
    return (
        registration.leader not in (NO_LEADER, broker_id)
        and broker_id not in registration.isr
        and broker_id not in registration.elr
        and (not is_hosted or registration.directory_of(broker_id) == DIRECTORY_LOST)
    )
