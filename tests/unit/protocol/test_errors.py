"""The table of errors is Kafka's, against the one that kio generates from Apache Kafka."""

import kio.schema.errors
import pytest

from penstock.protocol.errors import ErrorCode, KafkaError, error_info


@pytest.mark.parametrize("theirs", list(kio.schema.errors.ErrorCode), ids=lambda code: str(code.name))
def test_numbers_names_and_retriability_are_kafkas(theirs: kio.schema.errors.ErrorCode) -> None:
    ours = error_info(theirs)
    assert int(ours.code) == int(theirs)
    assert ours.name == theirs.name.upper()
    assert ours.is_retriable == theirs.retriable
    assert ours.sentence.endswith(".")


def test_there_is_a_row_for_every_code() -> None:
    assert {error_info(code).code for code in ErrorCode} == set(ErrorCode)


def test_unknown_numbers_read_as_the_unknown_server_error() -> None:
    assert error_info(9999).name == "UNKNOWN_SERVER_ERROR"


def test_an_error_prints_its_code_and_message() -> None:
    assert str(KafkaError(ErrorCode.INVALID_CONFIG, "no such key")) == "INVALID_CONFIG: no such key"
    assert str(KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)) == "UNKNOWN_TOPIC_ID: This server does not host this topic ID."
