"""EDN for Jepsen's checkers: what is written is read again by a reader of the format."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from told_history import QueueModel

from penstock.chaos.histories.edn import edn_lines, write_edn
from penstock.chaos.histories.operation import NEMESIS, Operation
from penstock.local.errors import ClusterError

TOKEN = re.compile(r'\s*([\[\]{}]|"(?:\\.|[^"\\])*"|[^\s,\[\]{}"]+)[\s,]*')


class Keyword(str):
    """:name"""

    __slots__ = ()


def read_edn(text: str) -> Any:
    """One form of the part of EDN that histories need."""
    tokens = iter(TOKEN.findall(text))
    form = _form(next(tokens), tokens)
    assert next(tokens, None) is None, "one form a line"
    return form


def _form(token: str, tokens: Iterator[str]) -> Any:
    if token == "[":
        return [_form(one, tokens) for one in iter(lambda: next(tokens), "]")]
    if token == "{":
        forms = [_form(one, tokens) for one in iter(lambda: next(tokens), "}")]
        return dict(zip(forms[::2], forms[1::2], strict=True))
    if token.startswith('"'):
        return token[1:-1].replace('\\"', '"').replace("\\n", "\n").replace("\\\\", "\\")
    if token.startswith(":"):
        return Keyword(token[1:])
    return {"nil": None, "true": True, "false": False}[token] if token in ("nil", "true", "false") else int(token)


def test_what_is_written_is_read_again() -> None:
    operations = QueueModel(Random(7)).run(300).operations
    for operation, line in zip(operations, edn_lines(operations), strict=False):
        form = read_edn(line)
        assert (form["index"], form["time"], form["process"]) == (operation.index, operation.time, operation.process)
        assert (form["type"], form["f"], form["value"]) == (operation.type, operation.f, operation.value)
        assert (form.get("final?", False), form.get("error")) == (operation.final, operation.error)
        assert all(isinstance(one, Keyword) for one in (form["type"], form["f"], *form))
        if operation.f in ("send", "poll", "txn"):
            assert all(isinstance(micro[0], Keyword) for micro in form["value"])
            assert not any(isinstance(one, Keyword) for micro in form["value"] for one in micro[1:])


def test_what_never_completed_has_an_unknown_outcome_at_the_end() -> None:
    operations = [
        Operation(4, "invoke", 1, 5, "send", [["send", "t-0", 7]]),
        Operation(5, "invoke", 2, 6, "poll", [["poll"]]),
        Operation(6, "ok", 2, 9, "poll", [["poll", {"t-0": [[0, 7]]}]]),
    ]
    *_, last = edn_lines(operations)
    assert len(list(edn_lines(operations))) == 4
    assert last == (
        '{:index 7, :time 9, :type :info, :process 1, :f :send, :value [[:send "t-0" 7]], :error "no completion"}\n'
    )


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=r"there/history.edn cannot be written: No such file"):
        write_edn(tmp_path / "there" / "history.edn", [])


@pytest.mark.parametrize(
    ("operation", "line"),
    [
        (
            Operation(3, "ok", 1, 5, "txn", [["append", "t-0", 7], ["r", "t-1", [1, 2]], ["r", "t-2", None]]),
            '{:index 3, :time 5, :type :ok, :process 1, :f :txn, :value [[:append "t-0" 7] [:r "t-1" [1 2]]'
            ' [:r "t-2" nil]]}',
        ),
        (
            Operation(4, "ok", 1, 5, "poll", [["poll", {"t-0": [[0, 10]]}]], final=True),
            '{:index 4, :time 5, :type :ok, :process 1, :f :poll, :value [[:poll {"t-0" [[0 10]]}]], :final? true}',
        ),
        (
            Operation(5, "info", NEMESIS, 5, "partition-one", {"begin": {"nodes": ["1"]}}),
            '{:index 5, :time 5, :type :info, :process :nemesis, :f :partition-one, :value {:begin {:nodes ["1"]}}}',
        ),
        (
            Operation(6, "fail", 2, 5, "write", {"k": "a b", "v": True}, 'said "no"'),
            '{:index 6, :time 5, :type :fail, :process 2, :f :write, :value {:k "a b", :v true},'
            ' :error "said \\"no\\""}',
        ),
    ],
    ids=["list-append", "poll", "nemesis", "register"],
)
def test_names_are_keywords_as_jepsen_has_them(operation: Operation, line: str) -> None:
    assert list(edn_lines([operation])) == [f"{line}\n"]
