"""Prose has Kafka's and Raft's nouns for subjects: words that hide them are on a list and occur nowhere.

docs/style.md has the reasons and examples.
"""

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
WORDS = re.compile(
    r"\b((?i:whoever|whomever|nobody|somebody|anybody|everybody|strangers?|tells? of|told of|hears|heard of"
    r"|to be had|had better|for ever)|is none)\b"
)
# Data of tests is in quotes: a member id, a host.
WORDS_OF_TESTS = re.compile(
    r"(?<![a-z\"])(whoever|whomever|nobody|somebody|anybody|everybody)(?![a-z\"])", re.IGNORECASE
)
SOURCES = ("protocol", "storage", "quorum", "broker", "client", "local", "chaos", "bench", "docs/*.md", "README.md")
GENERATED = ("docs/files.md", "docs/style.md", "docs/generate/", "docs/measurements/")


def test_no_word_hides_the_subject() -> None:
    found = [*_found(SOURCES, WORDS), *_found(("tests",), WORDS_OF_TESTS)]
    assert not found, "say which leader, log, broker or client it is:\n" + "\n".join(found)


def _found(sources: Sequence[str], words: re.Pattern[str]) -> list[str]:
    listed = subprocess.run(["git", "ls-files", *sources], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    lines = []
    for name in listed.split():
        if not name.endswith((".py", ".md")) or name.startswith(GENERATED) or ROOT / name == Path(__file__):
            continue
        for number, line in enumerate((ROOT / name).read_text().splitlines(), 1):
            lines += [f"{name}:{number}: {word}" for word in words.findall(line)]
    return lines
