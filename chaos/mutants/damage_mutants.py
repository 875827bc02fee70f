"""Bugs of how damaged files are found and made good, each as one patch, applied around a run.

No product module knows of them.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from ...broker.tiers import segment_upload
from ...storage.directories.log_scrubber import LogScrubber
from .edited import edited
from .mutant import Mutant


def _see_to_nothing(_: Any) -> Any:
    return lambda *_arguments: True


MUTANTS: Final = (
    Mutant(
        name="findings-come-to-nothing",
        bug="what scrubbing finds is neither reported nor made good",
        owner=LogScrubber,
        attribute="_on_finding",
        make=_see_to_nothing,
    ),
    Mutant(
        name="damage-is-copied-to-the-tier",
        bug="a segment is copied to the tier without a look at the CRC of its batches",
        owner=segment_upload,
        attribute="_pieces",
        make=edited("verify=True", "verify=False"),
    ),
)

BUGS: Final[Mapping[str, str]] = MappingProxyType({mutant.name: mutant.bug for mutant in MUTANTS})
"""What each is, by its name."""
