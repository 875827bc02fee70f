"""What can be wrong with one record, and with the settings that say how records are decoded."""

from ..job import JobError


class BadRecordError(Exception):
    """One record cannot be decoded; the message is its reason. The record is set aside, and the query goes on."""


class FormatError(JobError, ValueError):
    """The settings or a schema cannot be used: the query does not start, or stops."""


class RegistryError(JobError):
    """The schema registry gives no answer, or refuses. No record is to blame, so the query stops."""
