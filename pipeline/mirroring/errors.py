"""Why a copy ends."""


class MirrorError(Exception):
    """The sink or the source did not do what the copy needs, and trying again does not help; it says what does."""
