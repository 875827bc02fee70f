"""Both clients of the HTTP administration over https: an authority that they trust, and a certificate that says who
they are, by `ssl.principal.mapping.rules`."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest
from certificates import Authority
from waiting import wait_for

from penstock.client.admin import Admin, AdminProblem, AdminUnreachable, AsyncAdmin
from penstock.client.admin.credentials import AdminCredentials
from penstock.local.cluster import LocalCluster
from penstock.protocol.rest.acls import CreateAcl, CreateAcls

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

PASSWORD: Final = "never-shown-7"


class Site:
    """A node with https alone, the authority that all trust, and clients of it."""

    def __init__(self, folder: Path, authority: Authority, cluster: LocalCluster) -> None:
        self._folder = folder
        self._authority = authority
        (self.node,) = cluster.nodes.values()
        self.url = f"https://localhost:{self.node.admin_port}"

    def tls(self, common_name: str | None = None, authority: Authority | None = None) -> ssl.SSLContext:
        """Of a client whose certificate has that name, from the site's authority or from another one."""
        own = None if common_name is None else (authority or self._authority).issue("x", common_name=common_name)
        return self._authority.client_context(self._folder, own)

    def admin(self, common_name: str) -> Admin:
        return Admin(self.url, credentials=AdminCredentials(tls=self.tls(common_name)))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("https")
    (folder / "clients").mkdir()
    authority = Authority()
    trusted, own = folder / "authority.pem", folder / "node.pem"
    trusted.write_text(authority.certificate)
    own.write_text(authority.issue_for_node(1))
    properties = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
        "listener.name.admin.ssl.keystore.type": "PEM",
        "listener.name.admin.ssl.keystore.location": str(own),
        "listener.name.admin.ssl.truststore.type": "PEM",
        "listener.name.admin.ssl.truststore.location": str(trusted),
        "listener.name.admin.ssl.client.auth": "requested",
        "listener.name.admin.ssl.principal.mapping.rules": "RULE:^.*CN=([A-Za-z]+).*$/$1/L",
        "listener.name.admin.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.admin.plain.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule "
        f'required user_admin="{PASSWORD}" user_bob="{PASSWORD}";',
        "connection.failed.authentication.delay.ms": "0",
    }
    with LocalCluster(
        folder / "cluster",
        properties=properties,
        properties_of=lambda node: {"admin.listeners": f"https://localhost:{node.admin_port}"},
    ) as cluster:
        yield Site(folder / "clients", authority, cluster)


def acl(principal: str) -> CreateAcl:
    return CreateAcl(
        resource_type="CLUSTER",
        resource_name="kafka-cluster",
        pattern_type="LITERAL",
        principal=principal,
        host="*",
        operation="DESCRIBE",
        permission="ALLOW",
    )


def test_the_blocking_client_is_who_its_certificate_says(site: Site) -> None:
    with site.admin("Admin") as admin, site.admin("Ada") as ada:
        assert [node.node_id for node in admin.list_nodes().nodes] == [1]
        with pytest.raises(AdminProblem, match="User:ada") as refusal:
            ada.list_nodes()
        assert refusal.value.status == 403
        admin.create_acl(acl("User:ada"))
        assert [node.node_id for node in ada.list_nodes().nodes] == [1]
        (found,) = admin.search_acls(principal="User:ada").data
        assert (found.operation, found.permission) == ("DESCRIBE", "ALLOW")
        with pytest.raises(AdminProblem) as refusal:
            ada.create_acls(CreateAcls(data=[acl("User:ada")]))
        assert refusal.value.status == 403
        deleted = admin.delete_acls(
            resource_type="ANY", pattern_type="ANY", operation="ANY", permission="ANY", principal="User:ada"
        )
        assert len(deleted.data) == 1
        with pytest.raises(AdminProblem):
            ada.list_nodes()


def test_the_asynchronous_client_is_who_its_certificate_says(site: Site) -> None:
    async def scenario() -> None:
        credentials = AdminCredentials(tls=site.tls("Admin"))
        async with AsyncAdmin(site.url, credentials=credentials) as admin:
            assert [node.node_id for node in (await admin.list_nodes()).nodes] == [1]
            await admin.create_acl(acl("User:grace"))
            (found,) = (await admin.search_acls(principal="User:grace")).data
            assert found.principal == "User:grace"
            async for line in admin.follow_events():
                assert line.startswith(b"retry")
                break
        async with AsyncAdmin(site.url, credentials=AdminCredentials(tls=site.tls("Eve"))) as eve:
            with pytest.raises(AdminProblem, match="User:eve"):
                await eve.list_nodes()

    asyncio.run(scenario())


def test_a_password_goes_before_a_certificate(site: Site) -> None:
    for user, common_name, status in (("admin", None, 200), ("admin", "Ada", 200), ("bob", "Admin", 403)):
        credentials = AdminCredentials.password(user, PASSWORD, site.tls(common_name))
        with Admin(site.url, credentials=credentials) as admin:
            if status == 200:
                assert [node.node_id for node in admin.list_nodes().nodes] == [1]
            else:
                with pytest.raises(AdminProblem, match="User:bob"):
                    admin.list_nodes()


def test_who_shows_nothing_is_told_how_to_prove_himself(site: Site) -> None:
    with Admin(site.url, credentials=AdminCredentials(tls=site.tls())) as admin:
        with pytest.raises(AdminProblem) as refusal:
            admin.list_nodes()
        assert refusal.value.status == 401
        assert admin.get_health().is_ok
    with (
        Admin(site.url, credentials=AdminCredentials(tls=site.tls("1"))) as nameless,
        pytest.raises(AdminProblem, match="mapping") as unmapped,
    ):
        # No rule applies to its name.
        nameless.list_nodes()
    assert unmapped.value.status == 403


def test_strangers_that_begin_no_handshake_do_not_keep_others_out(site: Site) -> None:
    """They get the places that there are, and the oldest of them makes room."""
    with ExitStack() as stack:
        for _ in range(300):
            stack.enter_context(socket.create_connection(("127.0.0.1", site.node.admin_port or 0), timeout=10))

        def is_served() -> bool:
            try:
                with site.admin("Admin") as admin:
                    return [node.node_id for node in admin.list_nodes().nodes] == [1]
            except AdminUnreachable:
                return False

        wait_for(is_served, "the administrator is let in")
        log = site.node.log.read_bytes()
        assert b"Traceback" not in log
        assert b"ERROR" not in log


def test_neither_side_takes_a_certificate_of_an_authority_that_it_does_not_trust(site: Site) -> None:
    stranger = Authority()
    contexts = (ssl.create_default_context(), site.tls("Admin", stranger))
    for context in contexts:
        credentials = AdminCredentials(tls=context)
        with Admin(site.url, credentials=credentials) as admin, pytest.raises(AdminUnreachable, match="https://"):
            admin.list_nodes()
        asyncio.run(_is_refused(site, credentials))


async def _is_refused(site: Site, credentials: AdminCredentials) -> None:
    async with AsyncAdmin(site.url, credentials=credentials) as admin:
        with pytest.raises(AdminUnreachable):
            await admin.list_nodes()
