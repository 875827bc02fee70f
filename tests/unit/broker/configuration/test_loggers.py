"""Loggers have Kafka's names for their levels, and the level of the nearest above where they have none (KIP-412)."""

import logging

import pytest

from penstock.broker.configuration.loggers import PROCESS_LOGGERS, Loggers
from penstock.broker.configuration.penstock_keys import LOG_LEVELS


def loggers(*names: str, root_level: int = logging.INFO) -> tuple[Loggers, logging.Manager]:
    manager = logging.Manager(logging.RootLogger(root_level))
    for name in names:
        manager.getLogger(name)
    return Loggers(manager), manager


def test_packages_are_loggers_as_modules_are() -> None:
    all_of_them, manager = loggers("p.storage.log", "p.quorum.raft.voter")
    names = ["p", "p.quorum", "p.quorum.raft", "p.quorum.raft.voter", "p.storage", "p.storage.log", "root"]
    assert list(all_of_them.levels()) == names
    # To look makes none.
    assert isinstance(manager.loggerDict["p"], logging.PlaceHolder)


def test_a_level_is_that_of_the_nearest_above_that_has_one() -> None:
    all_of_them, manager = loggers("p.storage.log", "p.storage.files", "q", root_level=logging.WARNING)
    all_of_them.change({"p": "INFO"})
    all_of_them.change({"p.storage": "DEBUG"})
    all_of_them.change({"p.storage.files": "ERROR"})
    assert all_of_them.levels() == {
        "p": "INFO",
        "p.storage": "DEBUG",
        "p.storage.files": "ERROR",
        "p.storage.log": "DEBUG",
        "q": "WARN",
        "root": "WARN",
    }
    for name in ("p", "p.storage", "p.storage.files", "p.storage.log", "q"):
        assert manager.getLogger(name).getEffectiveLevel() == LOG_LEVELS[all_of_them.levels()[name]]
    all_of_them.change({"p.storage": None})
    all_of_them.change({"p": None})
    all_of_them.change({"root": "FATAL"})
    assert set(all_of_them.levels().values()) == {"FATAL", "ERROR"}
    assert all_of_them.levels()["p.storage.files"] == "ERROR"


@pytest.mark.parametrize("level", LOG_LEVELS)
def test_a_level_is_told_as_it_was_set(level: str) -> None:
    all_of_them, _ = loggers("p")
    all_of_them.change({"p": level})
    assert all_of_them.levels()["p"] == level


@pytest.mark.parametrize(
    ("number", "name"), [(0, "TRACE"), (7, "DEBUG"), (25, "WARN"), (logging.CRITICAL, "FATAL"), (51, "OFF")]
)
def test_a_level_without_a_name_is_told_as_the_lowest_that_is_written(number: int, name: str) -> None:
    assert loggers(root_level=number)[0].levels() == {"root": name}


def test_a_change_writes_a_line_before_it_may_be_silent(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        PROCESS_LOGGERS.change({"penstock.broker.configuration.loggers": "FATAL", "root": "WARN"})
        PROCESS_LOGGERS.change({"penstock.broker.configuration.loggers": None, "root": "INFO"})
    # The second one is below the level that the first one set.
    assert caplog.messages == [
        "Log levels changed: penstock.broker.configuration.loggers=FATAL (before: INFO), root=WARN (before: INFO)"
    ]


def test_all_that_a_request_changes_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    all_of_them, _ = loggers("p")
    all_of_them.change({"p": "DEBUG", "root": "ERROR"})
    all_of_them.change({"p": None})
    assert caplog.messages == [
        "Log levels changed: p=DEBUG (before: INFO), root=ERROR (before: INFO)",
        "Log levels changed: p=unset (before: DEBUG)",
    ]


def test_this_process_has_those_of_its_packages() -> None:
    assert {
        "root",
        "penstock",
        "penstock.broker",
        "penstock.broker.configuration.loggers",
    } <= PROCESS_LOGGERS.levels().keys()
