"""librdkafka's test program, read: the tests in its table, and what it prints of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from ..suite import Result, Status

# Sub-tests that are tests of their own as long as the whole test, which ends with its first failure, is in the way.
PARTS: Final[Mapping[str, Sequence[str]]] = {
    "0081_admin": (
        "do_test_unclean_destroy",
        "do_test_CreateTopics",
        "do_test_DeleteTopics",
        "do_test_CreatePartitions",
        "do_test_AlterConfigs",
        "do_test_IncrementalAlterConfigs",
        "do_test_DescribeConfigs",
        "do_test_DeleteRecords",
        "do_test_DescribeTopics",
        "do_test_DescribeCluster",
        "do_test_ListOffsets",
    ),
}
_ENTRY = re.compile(r"_TEST\((\w+),\s*([^,)]*)")
_NOT_OF_A_BROKER = ("TEST_F_LOCAL", "TEST_F_MANUAL")
_ROW = re.compile(r"\|\s+(\w+)\s+\|\s+(PASSED|FAILED|SKIPPED)\s+\|\s+([\d.]+)s")
_END = re.compile(r"=+ Test (\w+) (PASSED|FAILED|SKIPPED) =+")
_COLOR = re.compile(r"\x1b\[[0-9;]*m")


def listed_tests(table: str) -> list[str]:
    """The tests that need a broker, and their parts, in the order of the table in this text of test.c."""
    names: dict[str, None] = {}
    for match in _ENTRY.finditer(table, table.index("struct test tests[]")):
        name, flags = match.groups()
        if name != "main" and "_mock" not in name and not any(flag in flags for flag in _NOT_OF_A_BROKER):
            names[name] = None
            names.update(dict.fromkeys(f"{name}.{part}" for part in PARTS.get(name, ())))
    return list(names)


def read_result(test: str, text: str, how: str, seconds: float) -> Result:
    """What the program's output says of one test; one of which it does not say how it ended has failed.

    `how` is how the program ended, `seconds` how long it took.
    """
    text = _COLOR.sub("", text)
    whole, _, part = test.partition(".")
    ends = {name: (status, float(taken_s)) for name, status, taken_s in _ROW.findall(text)}
    for name, status in _END.findall(text):
        ends.setdefault(name, (status, seconds))
    status, taken_s = ends.get(whole, ("FAILED", seconds))
    if status == "PASSED" and part and f"[ {part}:" not in text:
        status = "SKIPPED"
    detail = ""
    if status == "SKIPPED":
        detail = next(iter(re.findall(r"SKIP[^\n]*", text)), "")
    elif status == "FAILED":
        first = re.search(rf'### Test "{whole}[^\n]*\n[^\n]*', text)
        said = first.group().replace("\n", " ") if first else ""
        at = text.find("TEST FAILURE")
        detail = f"{how}: {said}\n{text[at : at + 2000] if at >= 0 else text[-2000:]}"
    return Result(test=test, status=Status(status.lower()), seconds=taken_s, detail=detail)
