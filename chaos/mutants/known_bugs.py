"""All bugs that runs of the whole cluster can be given, by name."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from . import (
    damage_mutants,
    drain_mutants,
    group_mutants,
    line_mutants,
    move_mutants,
    replication_mutants,
    reported_mutants,
    specification_mutants,
    transaction_mutants,
)

_MUTANTS: Final = (
    *replication_mutants.MUTANTS,
    *group_mutants.MUTANTS,
    *transaction_mutants.MUTANTS,
    *line_mutants.MUTANTS,
    *drain_mutants.MUTANTS,
    *move_mutants.MUTANTS,
    *damage_mutants.MUTANTS,
    *specification_mutants.MUTANTS,
    *reported_mutants.MUTANTS,
)
NAMES: Final = tuple(dict.fromkeys(mutant.name for mutant in _MUTANTS))


@contextmanager
def applied(name: str) -> Iterator[None]:
    """All patches of this name."""
    with ExitStack() as patches:
        for mutant in _MUTANTS:
            if mutant.name == name:
                patches.enter_context(mutant.applied())
        yield
