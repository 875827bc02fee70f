"""Users with passwords, the ACLs that bind them, and delegation tokens, over TLS and SASL."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from ..secure_listener import SECOND_USER, USER, SecureListener
from .tools import CONSUME_TIMEOUT_MS, Tools, require, values

RECORDS: Final = 5
REFUSED: Final = "SaslAuthenticationException: Authentication failed"
# The columns of kafka-delegation-tokens: id, HMAC, owner, requester.
_TOKEN: Final = re.compile(r"^(\S{22}) +(\S{88}) +(User:\S+) +(User:\S+) ", re.MULTILINE)


class SecureTools:
    """The tools of one user, who proves himself by a file of properties."""

    def __init__(self, tools: Tools, secure: SecureListener, who: str, properties: str) -> None:
        self._tools = tools
        self._bootstrap = secure.bootstrap
        self._file = Path(tools.work, f"{tools.name}-{who}.properties")
        self._file.touch(mode=0o600)
        self._file.write_text(properties)

    def __call__(self, tool: str, *arguments: str | int, stdin: str = "", check: bool = True) -> str:
        """As `Tools` do."""
        told = ("--bootstrap-server", self._bootstrap, "--command-config", str(self._file))
        return self._tools.run(tool, *arguments, *told, stdin=stdin, check=check)

    def produce(self, topic: str, *, check: bool = True) -> str:
        """Records with the values m0, m1 …"""
        lines = "".join(f"{line}\n" for line in values(RECORDS))
        return self("console-producer", "--topic", topic, stdin=lines, check=check)

    def consume(self, topic: str, *, check: bool = True) -> str:
        """What the console consumer prints of the topic's only partition."""
        return self(
            "console-consumer",
            *("--topic", topic, "--partition", 0, "--offset", "earliest"),
            *("--max-messages", RECORDS, "--timeout-ms", CONSUME_TIMEOUT_MS),
            check=check,
        )


def delegation_tokens(tools: Tools, secure: SecureListener) -> None:
    topic = tools.new_topic()
    owner = SecureTools(tools, secure, "owner", secure.java_properties())
    renewer = SecureTools(tools, secure, "renewer", secure.java_properties(SECOND_USER))
    created = owner(
        "delegation-tokens", "--create", "--max-life-time-period", -1, "--renewer-principal", f"User:{SECOND_USER}"
    )
    token = _TOKEN.search(created)
    assert_token = f"Created delegation token with tokenId : {token[1]}" if token else "no token"
    require(assert_token in created, "no token was made", created)
    assert token is not None, "said above"
    require((token[3], token[4]) == (f"User:{USER}", f"User:{USER}"), "it is not the user's own", created)
    require(f"[User:{SECOND_USER}]" in created, "it has no renewer", created)

    described = owner("delegation-tokens", "--describe", "--owner-principal", f"User:{USER}")
    require("Total number of tokens : 1" in described and token[2] in described, "not described", described)
    for one in (renewer, owner):
        renewed = one("delegation-tokens", "--renew", "--renew-time-period", -1, "--hmac", token[2])
        require("Completed renew operation. New expiry date" in renewed, "not renewed", renewed)

    by_token = secure.java_properties(token[1], token[2], 'tokenauth="true"')
    bearer = SecureTools(tools, secure, "bearer", by_token)
    bearer.produce(topic)
    consumed = bearer.consume(topic)
    require(consumed.splitlines()[:RECORDS] == values(RECORDS), "the records did not come back", consumed)
    refused = bearer("delegation-tokens", "--create", "--max-life-time-period", -1, check=False)
    require("DelegationTokenDisabledException" not in refused, "tokens are off", refused)
    require("UnsupportedByAuthenticationException" in refused, "a token made a token", refused)
    wrong = SecureTools(tools, secure, "wrong", by_token.replace(token[2], token[2][::-1]))
    refused = wrong.produce(topic, check=False)
    require(REFUSED in refused, "the HMAC of a token is not looked at", refused)

    owner("delegation-tokens", "--expire", "--expiry-time-period", -1, "--hmac", token[2])
    described = owner("delegation-tokens", "--describe")
    require("Total number of tokens : 0" in described, "it is still there", described)
    refused = bearer.produce(topic, check=False)
    require(REFUSED in refused, "an expired token still proves something", refused)


def acls_bind(tools: Tools, secure: SecureListener) -> None:
    topic = tools.new_topic()
    user = SecureTools(tools, secure, "user", secure.java_properties())
    second = SecureTools(tools, secure, "second", secure.java_properties(SECOND_USER))
    tools("acls", "--add", "--allow-principal", f"User:{SECOND_USER}", "--producer", "--topic", topic)
    second.produce(topic)
    refused = user.produce(topic, check=False)
    require("Not authorized to access topics" in refused, "who has no ACL produces", refused)
    refused = second.consume(topic, check=False)
    require("Not authorized to access topics" in refused, "a producer's ACL lets consume", refused)
    tools("acls", "--add", "--allow-principal", f"User:{USER}", "--operation", "Read", "--topic", topic)
    consumed = user.consume(topic)
    require(consumed.splitlines()[:RECORDS] == values(RECORDS), "the records did not come back", consumed)


def scram_login(tools: Tools, secure: SecureListener) -> None:
    topic = tools.new_topic()
    entity = ("--entity-type", "users", "--entity-name", tools.name)
    user = SecureTools(tools, secure, "user", secure.java_properties(tools.name, "first"))
    require(REFUSED in user.produce(topic, check=False), "nobody proves himself")
    tools("configs", "--alter", *entity, "--add-config", "SCRAM-SHA-512=[iterations=8192,password=first]")
    user.produce(topic)
    tools("configs", "--alter", *entity, "--add-config", "SCRAM-SHA-512=[iterations=4096,password=second]")
    require(REFUSED in user.produce(topic, check=False), "the old password still proves something")


CHECKS: Final = (delegation_tokens, acls_bind, scram_login)
