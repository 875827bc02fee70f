"""Bugs of moves between log directories, each as one patch, applied around a run. No product module knows of them."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from ...storage.directories.log_copier import LogCopier
from ...storage.log.recovery_point import RecoveryPoint
from ...storage.log.rules.config import MAX_INT64
from .mutant import Mutant


def _copy_nothing_more(_: Any) -> Any:
    return lambda *_arguments: True


def _cut_nothing(fit: Callable[..., Any]) -> Any:
    return lambda copier, copy, future, log, _: fit(copier, copy, future, log, MAX_INT64)


def _lower_nothing(_: Any) -> Any:
    return lambda *_arguments: None


MUTANTS: Final = (
    Mutant(
        name="takes-over-behind",
        bug="a future log takes over without what was appended while its last piece was copied (KIP-113)",
        owner=LogCopier,
        attribute="copy_rest",
        make=_copy_nothing_more,
    ),
    Mutant(
        name="cut-not-copied",
        bug="what is cut off a log stays in the copy that is on its way to another log directory",
        owner=LogCopier,
        attribute="_fit",
        make=_cut_nothing,
    ),
    Mutant(
        name="safe-before-its-name",
        bug="what a moved log has synced counts though the next start may find the log that it replaced",
        owner=RecoveryPoint,
        attribute="lower_to",
        make=_lower_nothing,
    ),
)

BUGS: Final[Mapping[str, str]] = MappingProxyType({mutant.name: mutant.bug for mutant in MUTANTS})
"""What each is, by its name."""
