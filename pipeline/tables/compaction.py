"""Which small files of a table become one: those of a folder that has many, up to a size together. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from .manifest import DataFile


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionRule:
    """`after_files` small files of one folder are rewritten into files of about `target_bytes`; 0 never does."""

    after_files: int
    target_bytes: int

    def plan(self, files: Iterable[DataFile]) -> tuple[Rewrite, ...]:
        """One rewrite for each folder that has enough small files, those with most of them first.

        Small is less than half of the target: what was rewritten is rewritten again at most until it is half full, so
        that a byte is written about log2(target / first size) times.
        """
        small: dict[str, list[DataFile]] = defaultdict(list)
        for one in files:
            if one.size_bytes * 2 < self.target_bytes:
                small[one.folder].append(one)
        enough = [group for group in small.values() if self.after_files and len(group) >= max(2, self.after_files)]
        return tuple(self._rewrite(group) for group in sorted(enough, key=len, reverse=True))

    def _rewrite(self, group: list[DataFile]) -> Rewrite:
        size_bytes = sum(one.size_bytes for one in group)
        return Rewrite(
            paths=tuple(sorted(one.path for one in group)),
            file_count=-(-size_bytes // self.target_bytes) or 1,
            row_count=sum(one.row_count for one in group),
        )


NO_COMPACTION: Final = CompactionRule(after_files=0, target_bytes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """Files of one folder, and how many they become."""

    paths: tuple[str, ...]
    file_count: int
    row_count: int
