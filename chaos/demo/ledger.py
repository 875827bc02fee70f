"""An account of records by key: how many, and a checksum over all of them in their order.

Two accounts are equal when for each key the same records came in the same order; between keys no order is held.
"""

import zlib
from dataclasses import dataclass, field


@dataclass(slots=True)
class _KeyAccount:
    count: int = 0
    checksum: int = 0


@dataclass(slots=True)
class Ledger:
    _keys: dict[bytes, _KeyAccount] = field(default_factory=dict)

    def add(self, key: bytes, value: bytes, timestamp_ms: int | None) -> None:
        account = self._keys.get(key)
        if account is None:
            account = self._keys[key] = _KeyAccount()
        account.count += 1
        account.checksum = zlib.crc32(b"%a " % timestamp_ms + value, account.checksum)

    @property
    def key_count(self) -> int:
        return len(self._keys)

    @property
    def record_count(self) -> int:
        return sum(account.count for account in self._keys.values())

    def findings(self, read: "Ledger") -> list[str]:
        """What differs in the account of what was read, one sentence for each kind; nothing when they are equal."""
        missing = [key for key in self._keys if key not in read._keys]
        foreign = [key for key in read._keys if key not in self._keys]
        both = [key for key in self._keys if key in read._keys]
        short = [key for key in both if self._keys[key].count != read._keys[key].count]
        changed = [key for key in both if key not in short and self._keys[key] != read._keys[key]]
        return [
            f"{what} for {len(keys)} of {self.key_count} keys, such as {keys[0].decode(errors='replace')!r}"
            for what, keys in (
                ("no record came back", missing),
                ("records came back that were not sent", foreign),
                ("another number of records came back", short),
                ("records came back changed or in another order", changed),
            )
            if keys
        ]
