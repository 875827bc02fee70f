"""Transcripts of Apache Kafka's tools: read, written, put into normal form, compared."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conformance.tool_output.differences import Difference, compare, read_differences
from conformance.tool_output.normal_form import Names, names_of_nodes
from conformance.tool_output.suite import FOLDER
from conformance.tool_output.transcript import Command, Transcript, answer_lines, files_of

TRANSCRIPTS = sorted(FOLDER.glob("*.txt"))
NODES = names_of_nodes(
    [(1, "127.0.0.1:9092", "127.0.0.1:9192", "/tmp/c/node-1"), (2, "127.0.0.1:909", "127.0.0.1:919", "/d")]
)
TOPIC_ID = "Kq7wG2m2R1uE-3v0_x9QYA"
SHORT = """# A head.

@ a.json {"a": 1}
$ printf 'a\\nb\\n' | kafka-console-producer --topic 't t'
$ kafka-topics --list
| a
! b
? 1
# An end.
"""


def test_a_transcript_is_steps_and_is_written_as_it_was_read() -> None:
    transcript = Transcript.parse(SHORT)
    first, second = transcript.steps
    assert first.command == Command(
        text=r"printf 'a\nb\n' | kafka-console-producer --topic 't t'",
        tool="console-producer",
        arguments=("--topic", "t t"),
        stdin="a\nb\n",
    )
    assert files_of(first) == {"a.json": '{"a": 1}'}
    assert first.answer == ()
    assert second.answer == ("| a", "! b", "? 1")
    assert transcript.format([step.answer for step in transcript.steps]) == SHORT


@pytest.mark.parametrize("text", ["| an answer\n", "$ rm --all\n", "$ \n"])
def test_a_transcript_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"an answer without a command|a command line begins with"):
        Transcript.parse(text)


@pytest.mark.parametrize("file", TRANSCRIPTS, ids=[file.stem for file in TRANSCRIPTS])
def test_every_transcript_is_in_its_own_form(file: Path) -> None:
    text = file.read_text()
    transcript = Transcript.parse(text)
    assert transcript.steps
    assert transcript.format([step.answer for step in transcript.steps]) == text


def test_only_commands_that_change_nothing_are_asked_again() -> None:
    reading = ["kafka-topics --describe", "kafka-get-offsets --topic a", "kafka-cluster list-endpoints"]
    changing = ["kafka-topics --create --topic a", "kafka-cluster unregister --id 3", "kafka-configs --alter"]
    assert all(Command.parse(text).is_reading for text in reading)
    assert not any(Command.parse(text).is_reading for text in changing)


def test_addresses_folders_and_ids_have_names() -> None:
    names = Names(NODES)
    names.begin_transcript()
    output = f"Topic: a\tTopicId: {TOPIC_ID}\n127.0.0.1:9092 127.0.0.1:909 is 9192 of 19192\n/tmp/c/node-1/a-0\n"
    assert names.normalise(output) == [
        "Topic: a  TopicId: <id 1>",
        "<node 1> <node 2> is <controller port 1> of 19192",
        "<folder 1>/a-0",
    ]
    assert names.normalise(f"no {TOPIC_ID} here") == ["no <id 1> here"]
    assert names.resolve("<id 1> at <node 2>") == f"{TOPIC_ID} at 127.0.0.1:909"


def test_orders_of_hash_maps_column_widths_sizes_and_frames_are_no_difference() -> None:
    names = Names({})
    lines = (
        "Topic: a\tConfigs: b=1,a=2 \n"
        "id    host      \n"
        '{"b":[{"size":70,"p":2},{"size":0,"p":1}],"a":null}\n'
        "Feature: f    Epoch: 17\n"
        "Local controller 3 does not support it.\n"
        "java.lang.Error: no\n\tat a.b.C.d(E.java:1)\n\t... 12 more\n"
    )
    assert names.normalise(lines) == [
        "Topic: a  Configs: a=2,b=1",
        "id  host",
        '{"a":null,"b":[{"p":1,"size":0},{"p":2,"size":<size>}]}',
        "Feature: f  Epoch: <offset>",
        "Local controller <id> does not support it.",
        "java.lang.Error: no",
    ]


def test_any_node_may_coordinate_a_group_if_its_id_is_that_of_its_address() -> None:
    names = Names(NODES)
    assert names.normalise("g  127.0.0.1:9092   (1)  -\n") == ["g  <node>  (id)  -"]
    assert names.normalise("g  127.0.0.1:9092   (2)  -\n") == ["g  <node 1>  (2)  -"]


def test_how_a_tool_is_used_is_left_out() -> None:
    names = Names({})
    assert names.normalise("Missing\nOption    Description   \n---\n--a\n") == ["Missing", "(usage)"]
    assert names.normalise("usage: kafka-cluster [-h]\nerror\n") == ["(usage)"]
    assert names.normalise('Option "[a]" is not one\n') == ['Option "[a]" is not one']


def test_an_answer_has_a_mark_for_each_stream_and_the_exit_status() -> None:
    assert answer_lines(["a", ""], ["b"], 0) == ("| a", "|", "! b")
    assert answer_lines([], [], 1) == ("? 1",)


def test_a_line_that_differs_is_told_unless_a_known_difference_explains_it() -> None:
    known = Difference(
        transcript="t", why="w", command=".*--list", apache_kafka=(r"\| kafka",), penstock=(r"\| pens.*",)
    )
    expected, found = ["| same", "| kafka"], ["| same", "| penstock", "! new"]
    comparison = compare("a --list", expected, found, [known])
    assert comparison.unexplained == ("+! new",)
    assert comparison.explained_by == {known}
    other_command = compare("a --describe", expected, found, [known])
    assert sorted(other_command.unexplained) == ["+! new", "+| penstock", "-| kafka"]
    assert not other_command.explained_by
    assert compare("a --list", expected, expected, [known]).unexplained == ()


def test_known_differences_name_transcripts_and_commands_that_there_are() -> None:
    texts = {file.stem: Transcript.parse(file.read_text()) for file in TRANSCRIPTS}
    for difference in read_differences():
        commands = [step.command.text for step in texts[difference.transcript].steps]
        assert any(re.fullmatch(difference.command, command) for command in commands), difference
        assert difference.why
