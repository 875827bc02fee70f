"""The metadata shell's tree and commands."""

import pytest
from click.testing import CliRunner
from metadata_cluster import CLUSTER_ID, Cluster, directory_id
from typed_ids import node_ids

from penstock.protocol.ids import LeaderEpoch, NodeId, PartitionEpoch, TopicId
from penstock.quorum.decisions.answers import base64_id
from penstock.quorum.inspection.commands import metadata
from penstock.quorum.inspection.rules.explorer import COMMANDS, Explorer, ExplorerError
from penstock.quorum.inspection.rules.image_tree import image_tree
from penstock.quorum.metadata.image import ConfigResourceType
from penstock.quorum.metadata.records import ConfigRecord, PartitionRecord, TopicRecord
from penstock.quorum.metadata.security_records import (
    AccessControlEntryRecord,
    ClientQuotaEntity,
    ClientQuotaRecord,
    DelegationTokenRecord,
    UserScramCredentialRecord,
)

DIRECTORY = base64_id(directory_id(1))
PARTITION = (
    f"PartitionRegistration(replicas=[1], directories=[{DIRECTORY}], isr=[1], removingReplicas=[], addingReplicas=[], "
    "elr=[], lastKnownElr=[], leader=1, leaderRecoveryState=RECOVERED, leaderEpoch=0, partitionEpoch=0)"
)
TOPIC_ID = TopicId(directory_id(77))
ACL_ID = directory_id(78)
ACL = (
    "StandardAcl(resourceType=TOPIC, resourceName=foo, patternType=LITERAL, principal=User:a, host=*, operation=READ, "
    "permissionType=ALLOW)"
)
SECRET = b"hunter2"


@pytest.fixture
def explorer() -> Explorer:
    cluster = Cluster()
    cluster.add_brokers(1)
    cluster.replay([TopicRecord(name="foo", topic_id=TOPIC_ID)])
    cluster.replay(
        [
            PartitionRecord(
                topic_id=TOPIC_ID, partition_id=index, replicas=node_ids(1), isr=node_ids(1), leader=NodeId(1),
                leader_epoch=LeaderEpoch(0), partition_epoch=PartitionEpoch(0), directories=(directory_id(1),),
            )
            for index in range(2)
        ]
    )  # fmt: skip
    for kind, resource, name, value in (
        (ConfigResourceType.TOPIC, "foo", "retention.ms", "5"),
        (ConfigResourceType.BROKER, "", "ssl.keystore.password", "secret"),
        (ConfigResourceType.BROKER, "1", "num.io.threads", "4"),
    ):
        cluster.replay([ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=value)])
    cluster.replay(
        [
            AccessControlEntryRecord(
                id=ACL_ID, resource_type=2, resource_name="foo", pattern_type=3, principal="User:a", host="*",
                operation=3, permission_type=3,
            ),
            UserScramCredentialRecord(
                name="a", mechanism=1, salt=SECRET, stored_key=SECRET, server_key=SECRET, iterations=4096
            ),
            ClientQuotaRecord(
                entity=(
                    ClientQuotaEntity(entity_type="user", entity_name="a(b)"),
                    ClientQuotaEntity(entity_type="client-id"),
                ),
                key="producer_byte_rate",
                value=1024,
            ),
            DelegationTokenRecord(
                token_id="t1", owner="User:a", requester="User:b", issue_timestamp=11, max_timestamp=12,
                expiration_timestamp=13,
            ),
        ]
    )  # fmt: skip
    return Explorer(image_tree(cluster.image, {"version": "1"}))


def told(explorer: Explorer, line: str) -> list[str]:
    return list(explorer.run_line(line))


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        ("ls /", ["image", "local"]),
        ("ls /image/topics/byName", ["foo"]),
        ("ls /image/topics/byName/foo", ["0", "1", "id", "name"]),
        ("cat /image/topics/byName/foo/1", [PARTITION]),
        ("cat /topics/byName/foo/0/data", [PARTITION]),
        (f"cat /topics/byId/{base64_id(TOPIC_ID)}/name", ["foo"]),
        ("cat /image/topics/byName/*/id", [base64_id(TOPIC_ID)]),
        (f"cat /acls/byId/{base64_id(ACL_ID)}", [ACL]),
        (
            "cat /scram/SCRAM-SHA-256/a",
            ["ScramCredentialData(salt=[redacted], storedKey=[redacted], serverKey=[redacted], iterations=4096)"],
        ),
        ("ls /clientQuotas", ["clientId(<default>)_user(a\\(b\\))"]),
        (
            "cat /delegationToken/t1",
            [
                "DelegationTokenData(tokenId=[redacted], owner=[redacted], tokenRequester=[redacted], "
                "renewers=[redacted], issueTimestamp=[redacted], maxTimestamp=[redacted], expiryTimestamp=[redacted])"
            ],
        ),
        ("ls /image/configs", ["BROKER", "BROKER:1", "TOPIC:foo"]),
        ("cat /image/configs/TOPIC:foo/retention.ms", ["5"]),
        ("cat /image/configs/BROKER/ssl.keystore.password", ["[redacted]"]),
        ("cat /image/clusterId /local/version", [CLUSTER_ID, "1"]),
        ("cat /image/features/finalized_group.version", ["1"]),
        ("cat /image/producerIds/nextProducerId", ["0"]),
        ("cat /image/provenance", ["offset 7, epoch 1, time 1970-01-01T00:00:01.000Z[UTC]"]),
        ("find /image/configs/TOPIC:foo", ["/image/configs/TOPIC:foo", "/image/configs/TOPIC:foo/retention.ms"]),
        ("tree /configs/TOPIC:foo", ["TOPIC:foo:", "  retention.ms: 5"]),
        ("", []),
    ],
)
def test_the_tree_is_that_of_kafka_s_shell(explorer: Explorer, line: str, lines: list[str]) -> None:
    assert told(explorer, line) == lines


def test_a_broker_is_printed_as_kafka_prints_it(explorer: Explorer) -> None:
    (line,) = told(explorer, "cat /image/cluster/brokers/1")
    assert line.startswith("BrokerRegistration(id=1, epoch=")
    assert "Endpoint(listenerName='PLAINTEXT', securityProtocol=PLAINTEXT, host='127.0.0.1', port=9001)" in line
    assert f"rack=Optional.empty, fenced=false, inControlledShutdown=false, directories=[{DIRECTORY}])" in line


def test_one_walks_as_in_folders(explorer: Explorer) -> None:
    assert told(explorer, "cd image/topics") == []
    assert told(explorer, "pwd") == ["/image/topics"]
    assert told(explorer, "ls byName/foo/../../byName") == ["foo"]
    told(explorer, "cd ..")
    assert told(explorer, "pwd") == ["/image"]
    told(explorer, "cd ../..")
    assert told(explorer, "pwd") == ["/"]
    told(explorer, "cd image")
    told(explorer, "cd")
    assert told(explorer, "pwd") == ["/"]


def test_several_folders_are_listed_under_their_paths(explorer: Explorer) -> None:
    assert told(explorer, "ls /image/provenance /image/producerIds /local") == [
        "provenance", "", "/image/producerIds:", "nextProducerId", "", "/local:", "version",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("cat /image", "/image is a folder."),
        ("cat", "cat needs a path: cat PATH…."),
        ("cat /nothing", "There is no /nothing here."),
        ("cat /topics/byName/foo/2", "There is no /topics/byName/foo/2 here."),
        ("cat /topics/byName/foo/00", "There is no /topics/byName/foo/00 here."),
        ("ls /topics/byId/not-an-id", "There is no /topics/byId/not-an-id here."),
        ("cd /image/provenance", "/image/provenance is not one folder."),
        ("cd a b", "cd takes no more than this: cd [PATH]."),
        ("rm /", "There is no command rm; help lists those there are."),
        ("man rm", "There is no command rm; help lists those there are."),
        ('cat "x', "The line cannot be read: No closing quotation."),
    ],
)
def test_what_cannot_be_done_gets_one_sentence(explorer: Explorer, line: str, sentence: str) -> None:
    with pytest.raises(ExplorerError) as caught:
        told(explorer, line)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("line", "completions"),
    [
        ("c", ["cat", "cd"]),
        ("man p", ["pwd"]),
        ("ls im", ["image/"]),
        ("cat /image/pro", ["/image/producerIds/", "/image/provenance"]),
        ("cat image/topics/byName/f", ["image/topics/byName/foo/"]),
        ("cat /nowhere/x", []),
        ("cat /image/provenance/", []),
    ],
)
def test_the_last_word_is_completed(explorer: Explorer, line: str, completions: list[str]) -> None:
    assert explorer.completions(line) == completions


def test_help_has_every_command(explorer: Explorer) -> None:
    assert [line.split()[0] for line in told(explorer, "help")] == list(COMMANDS)
    assert told(explorer, "man cat") == ["cat PATH…", "  Print a value."]


def test_exit_ends(explorer: Explorer) -> None:
    assert not explorer.is_done
    told(explorer, "exit")
    assert explorer.is_done


def test_what_is_read_must_be_said() -> None:
    for arguments in ([], ["-d", "/x", "-s", "/y"]):
        answer = CliRunner().invoke(metadata, ["shell", *arguments])
        assert answer.exit_code == 2
        assert "Give either --directory or --snapshot." in answer.output
    answer = CliRunner().invoke(metadata, ["shell", "-d", "/nowhere/at/all", "pwd"])
    assert (answer.exit_code, answer.output) == (1, "Error: /nowhere/at/all is no folder.\n")
