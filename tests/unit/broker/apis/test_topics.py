"""CreateTopics, DeleteTopics, CreatePartitions: what is decided before the controller is asked."""

from __future__ import annotations

from datetime import timedelta

import pytest

from penstock.broker.apis.topics import check_time
from penstock.protocol.errors import ErrorCode, KafkaError


@pytest.mark.parametrize("milliseconds", [0, -1])
def test_request_without_time_is_timed_out(milliseconds: int) -> None:
    with pytest.raises(KafkaError) as caught:
        check_time(timedelta(milliseconds=milliseconds))
    assert caught.value.code == ErrorCode.REQUEST_TIMED_OUT
    check_time(timedelta(milliseconds=1))
