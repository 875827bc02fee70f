"""What must be true at the end of every run."""

from penstock.chaos.histories.operation import Header, History
from penstock.chaos.runs.end_of_run import end_of_run

EMPTY = History(Header("queue"), ())


def test_a_cluster_that_is_whole_and_clients_that_ended_are_no_finding() -> None:
    assert end_of_run(None, ())(EMPTY).findings == ()


def test_what_the_cluster_lacks_is_a_finding_that_nothing_allows() -> None:
    (finding,) = end_of_run("2 of 3 brokers are there", ())(EMPTY).findings
    assert (finding.type, finding.allowed) == ("not-whole", False)
    assert "2 of 3 brokers" in finding.message


def test_each_client_that_failed_is_a_finding() -> None:
    checked = end_of_run(None, ("client 1 hung", "client 2 crashed"))(EMPTY)
    assert [finding.message for finding in checked.findings] == ["client 1 hung", "client 2 crashed"]
    assert checked.counts == {"client-failure": 2}
