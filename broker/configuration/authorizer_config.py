"""The configuration of the authorizer. Kafka: `StandardAuthorizer.configure`."""

from typing import Final

from ...protocol.errors import ConfigError
from ...quorum.permissions.ruling import AuthorizerSettings
from .property_values import PropertyValues

AUTHORIZER_CLASS: Final = "authorizer.class.name"
STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
SUPER_USERS: Final = "super.users"
ALLOW_EVERYONE: Final = "allow.everyone.if.no.acl.found"


def load_authorizer(values: PropertyValues) -> AuthorizerSettings | None:
    """Returns None for a node without an authorizer, on which everyone may do everything. Raises ConfigError."""
    name = (values.text_or_none(AUTHORIZER_CLASS) or "").strip()
    # Kafka's authorizer reads these two for itself: no table has them.
    super_users = values.properties.get(SUPER_USERS, "").strip()
    everyone = values.properties.get(ALLOW_EVERYONE, "").strip()
    values.used.update((SUPER_USERS, ALLOW_EVERYONE))
    if not name:
        for key, text in ((SUPER_USERS, super_users), (ALLOW_EVERYONE, everyone)):
            if text:
                # To start without what it asks for would leave a door open.
                raise ConfigError(f"{key} is set, but {AUTHORIZER_CLASS} is not: everyone may do everything then.")
        return None
    if name != STANDARD_AUTHORIZER:
        raise ConfigError(
            f"{AUTHORIZER_CLASS} is {name}, but can only be {STANDARD_AUTHORIZER}: no other class can be loaded here."
        )
    if everyone.lower() not in ("", "true", "false"):
        raise ConfigError(f"{ALLOW_EVERYONE} is {everyone!r}, but it is true or false.")
    return AuthorizerSettings(
        super_users=frozenset(_principals(super_users)), allows_without_acls=everyone.lower() == "true"
    )


def _principals(text: str) -> list[str]:
    """Principals as "type:name", with semicolons between them: names of certificates have commas."""
    principals = [one.strip() for one in text.split(";") if one.strip()]
    for one in principals:
        kind, colon, name = one.partition(":")
        if not (kind and colon and name):
            raise ConfigError(
                f"{SUPER_USERS} has {one!r}, but expected are principals as type:name, with semicolons between them."
            )
    return principals
