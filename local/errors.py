"""What can go wrong with a local cluster; each message is the sentence to show."""


class ClusterError(Exception):
    """What was asked for cannot be, or did not come about."""


class NodeFailedError(ClusterError):
    """A node ended, or did not do what it was told; the end of its log is in the message."""


class PortInUseError(ClusterError):
    """A node could not listen there."""


class UnreadableRecordError(ClusterError):
    """The record of a cluster is there and is not one."""
