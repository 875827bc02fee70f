"""Rules from names of certificates to names of principals (KIP-371): what Apache Kafka's `SslPrincipalMapper` says."""

import pytest

from penstock.broker.configuration.principal_mapping import parse_principal_mapping
from penstock.protocol.errors import ConfigError

KEY = "ssl.principal.mapping.rules"


@pytest.mark.parametrize(
    ("rules", "name", "principal"),
    # Asked of `SslPrincipalMapper` of kafka-clients 4.3.1; None is its NoMatchingRule.
    [
        ("DEFAULT", "CN=Duke,OU=ServiceUsers,O=Org,C=US", "CN=Duke,OU=ServiceUsers,O=Org,C=US"),
        ("", "CN=Duke,OU=ServiceUsers,O=Org,C=US", None),
        (", ,DEFAULT", "CN=Duke,OU=ServiceUsers,O=Org,C=US", "CN=Duke,OU=ServiceUsers,O=Org,C=US"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "CN=Duke,OU=ServiceUsers,O=Org,C=US", "Duke"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L, DEFAULT", "CN=Duke,OU=ServiceUsers,O=Org,C=US", "duke"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/U", "CN=Duke,OU=ServiceUsers,O=Org,C=US", "DUKE"),
        (
            "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L",
            "CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US",
            "duke@sme",
        ),
        ("RULE:^cn=(.*?),ou=(.*?),dc=(.*?),dc=(.*?)$/$1@$2/U", "cn=duke,ou=sme,dc=mycp,dc=com", "DUKE@SME"),
        ("RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U", "cN=duke,OU=JavaSoft,O=Sun Microsystems", "DUKE"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "CN=x,O=y", None),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,RULE:CN=(.*),O=(.*)/$2-$1/", "CN=x,O=y", "y-x"),
        ("RULE:.*/x/", "CN=Duke,OU=ServiceUsers,O=Org,C=US", "xx"),
        ("RULE:(.*)/<$1>/", "abc", "<abc><>"),
        ("RULE:.+/x/", "CN=Duke,OU=ServiceUsers,O=Org,C=US", "x"),
        ("RULE:a|abc/x/", "abc", "xbc"),
        ("RULE:(a|abc)+/x/", "aabc", "xbc"),
        ("RULE:CN=(\\w+)(,.*)?/$1$2/", "CN=a", "a"),
        ("RULE:CN=(.)(.)(.).*/$3$2$1$4/", "CN=abcd", "cba$4"),
        ("RULE:CN=(.).*/$12/", "CN=abcd", "a2"),
        ("RULE:CN=(.).*/$0!/", "CN=abcd", "CN=abcd!"),
        ("RULE:CN=(.).*/$01/", "CN=abcd", "a"),
        ("RULE:CN=(.).*/\\$1/", "CN=abcd", "$1"),
        ("RULE:CN=(.).*/a\\\\b$1/", "CN=abcd", "a\\ba"),
        ("RULE:CN=(.).*/a\\/b$1/", "CN=abcd", "a/ba"),
        ("RULE:CN=a\\/(.)/$1/", "CN=a/b", "b"),
        ("RULE:^CN=((\\\\, *|\\w)+)(,.*|$)/$1/,DEFAULT", "CN=Tkac\\, Adam,OU=ITZ,DC=geodis,DC=cz", "Tkac\\, Adam"),
        ("RULE:^CN=((\\\\, *|\\w)+)(,.*|$)/$1/,DEFAULT", "CN=Tkac Adam", "CN=Tkac Adam"),
        ("RULE:CN=.*/$0/", "CN=Duke,OU=ServiceUsers,O=Org,C=US", "CN=Duke,OU=ServiceUsers,O=Org,C=US"),
        ("RULE:CN=(.*?)(,.*)?/$1/L", "CN=ÄÖİ", "äöi̇"),
        ("RULE:CN=(.*?)(,.*)?/$1/U", "CN=straße", "STRASSE"),
        ("RULE://,DEFAULT", "CN=Duke,OU=ServiceUsers,O=Org,C=US", "CN=Duke,OU=ServiceUsers,O=Org,C=US"),
        ("RULE:/x/", "", "x"),
        ("DEFAULT", "", ""),
        ("RULE:^CN=([^,]+).*$/$1/ ,  RULE:^O=([^,]+).*$/$1/L , DEFAULT", "O=Acme,C=US", "acme"),
        ("RULE:CN=(\\d+).*/$1/", "CN=123,O=x", "123"),
    ],
)
def test_names_are_mapped_as_by_kafka(rules: str, name: str, principal: str | None) -> None:
    assert parse_principal_mapping(KEY, rules).name_of(name) == principal


@pytest.mark.parametrize(
    ("rules", "sentence"),
    # The first are refused by Kafka too, when it starts or when the first client shows a certificate.
    [
        ("default", "one rule is 'default'"),
        ("DEFAULT/L", "one rule is 'DEFAULT/L'"),
        ("rule:.*/x/", "one rule is 'rule:"),
        ("RULE:CN=(.*?),OU=ServiceUsers.*/$1", r"one rule is 'RULE:CN=\(\.\*\?\)'"),
        ("RULE:^CN=(.*?)$/$1/L/U", "one rule is 'RULE:"),
        ("RULE:(/$1/", r"pattern '\(', which RE2 does not take: missing \)"),
        ("RULE:CN=.*/$1/", r"replacement '\$1', whose \$ at 0 names no group"),
        ("RULE:CN=(.*)/a$/", r"replacement 'a\$', whose \$ at 1 names no group"),
        ("RULE:CN=(.*)/$x/", r"replacement '\$x', whose \$ at 0 names no group"),
        # These only here.
        (r"RULE:CN=(.)\1/$1/", "no references to groups, lookaround or possessive quantifiers"),
        ("RULE:CN=(?=a)(.)/$1/", "no references to groups, lookaround or possessive quantifiers"),
        ("RULE:CN=(?<a>.*)/${a}/", "names no group"),
    ],
)
def test_rules_that_cannot_be(rules: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence) as raised:
        parse_principal_mapping(KEY, rules)
    assert str(raised.value).startswith(KEY)


def test_a_hostile_name_takes_linear_time() -> None:
    """Python's or Java's engine would take longer than the universe is old."""
    rules = parse_principal_mapping(KEY, "RULE:CN=((a+)+)+b/$1/,DEFAULT")
    name = "CN=" + "a" * 10_000
    assert rules.name_of(name) == name
