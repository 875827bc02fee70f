"""What of an answer depends on permissions, as one line: errors, what is shown at all, and the operations it tells."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

from differential.permissions.acl_states import OPERATIONS, Kind, Operation

from penstock.protocol.errors import ErrorCode

NAMES = (
    *("name", "topic", "topic_name", "topic_id", "group_id", "transactional_id", "key", "resource_name", "user"),
    *("principal_name", "entity_name"),
)
_NO_OPERATIONS = -(2**31)
_WHOLE = [set(OPERATIONS[kind]) for kind in (Kind.TOPIC, Kind.GROUP, Kind.CLUSTER)]
# Names that numbers may contain by chance are not looked for in sentences.
_SHORT = 2
# What stands before it is the request, with addresses of objects in the broker's memory.
_NEEDS = re.compile(r"^.*\bneeds (\w+) permission\.?")
_ZERO_ID = UUID(int=0)


def outcome(answer: Mapping[str, Any], words: Mapping[str, str], shows: frozenset[str]) -> str:
    """`words` are the names and ids that the question is about; items named after something else are left out."""
    return _Reader(words, shows).fields(answer)


class _Reader:
    def __init__(self, words: Mapping[str, str], shows: frozenset[str]) -> None:
        self._words = words
        self._shows = shows

    def fields(self, values: Mapping[str, Any]) -> str:
        return " ".join(self._parts(values))

    def _parts(self, values: Mapping[str, Any]) -> Iterator[str]:
        for name in NAMES:
            if values.get(name) is not None:
                yield self._word(values[name])
        for name, value in values.items():
            if name == "error_code":
                yield _error(value)
            elif name.endswith("error_code"):
                yield f"{name}={_error(value)}"
            elif name.endswith("error_message"):
                if value and values.get("error_code") != 0:
                    yield f'"{self._text(value)}"'
            elif name.endswith("authorized_operations"):
                yield f"may {_operations(value)}"
            elif name in self._shows:
                yield f"{name}={self._shown(value)}"
            elif isinstance(value, list) and value and isinstance(value[0], Mapping):
                items = self._items(value)
                if items or name in _EMPTY_MATTERS:
                    yield f"{name}[{items}]"
            elif name in _EMPTY_MATTERS and value in (None, []):
                yield f"{name}[]"

    def _items(self, items: list[Mapping[str, Any]]) -> str:
        own = [one for one in items if not self._is_foreign(one)]
        texts = [text for one in own if (text := self.fields(one))]
        return "; ".join(sorted(texts))

    def _shown(self, value: Any) -> str:
        if isinstance(value, (list, bytes)):
            return "some" if value else "none"
        return self._text(str(value))

    def _is_foreign(self, item: Mapping[str, Any]) -> bool:
        found = [item[name] for name in NAMES if item.get(name) is not None]
        return (
            bool(found)
            and all(self._key(one) not in self._words for one in found if one != _ZERO_ID)
            and not all(one in (_ZERO_ID, "") for one in found)
        )

    @staticmethod
    def _key(value: Any) -> str:
        return str(value)

    def _word(self, value: Any) -> str:
        if value == _ZERO_ID:
            return "no-id"
        return self._words.get(str(value), f"<{value}>" if value == "" else "<other>")

    def _text(self, value: str) -> str:
        for word in sorted(self._words, key=len, reverse=True):
            if len(word) > _SHORT:
                value = value.replace(word, f"<{self._words[word]}>")
        return _NEEDS.sub(r"needs \1 permission", value)


_EMPTY_MATTERS = frozenset({"groups", "topics", "responses", "results", "transaction_states", "tokens", "configs"})


def _error(code: int) -> str:
    return ErrorCode(code).name if code in set(ErrorCode) else str(code)


def _operations(bits: int) -> str:
    if bits == _NO_OPERATIONS:
        return "not asked"
    found = tuple(one for one in Operation if bits >> one & 1)
    return "everything" if set(found) in _WHOLE else "+".join(one.name for one in found) or "nothing"
