"""Why a cluster could not be asked."""


class RequestError(Exception):
    """A cluster did not answer in time, or refused in a way that trying again does not help; it says what was asked."""
