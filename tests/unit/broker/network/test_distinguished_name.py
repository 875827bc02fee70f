"""Names of certificates as Java tells them, and what is no certificate."""

import ssl

import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st

from penstock.broker.network.rules.distinguished_name import name_of, subject_of
from penstock.protocol.errors import CorruptData


@pytest.mark.parametrize(
    ("der", "name"),
    # Names in DER, and what `X500Principal.getName()` of Java 17 says of them.
    [
        ("3000", ""),
        (
            "305c310b3009060355040613025553310d300b06035504080c044f68696f310a300806035504070c0178310c300a06035504"
            "0a0c034f726731153013060355040b0c0c536572766963655573657273310d300b06035504030c0444756b65",
            "CN=Duke,OU=ServiceUsers,O=Org,L=x,ST=Ohio,C=US",
        ),
        (
            "305f31133011060a0992268993f22c64011916036f726731173015060a0992268993f22c64011916076578616d706c653112"
            "3010060a0992268993f22c6401010c027531310f300d06035504090c064d61696e2031310a300806035504030c016e",
            "CN=n,STREET=Main 1,UID=u1,DC=example,DC=org",
        ),
        (
            "3033310a3008060355040a0c01613125300806035504030c01783008060355040b0c0179300f060a0992268993f22c640101"
            "0c017a",
            "CN=x+OU=y+UID=z,O=a",
        ),
        ("301d311b300f060a0992268993f22c6401010c017a300806035504030c0178", "UID=z+CN=x"),
        ("30153113301106035504030c0a546b61632c204164616d", "CN=Tkac\\, Adam"),
        ("30143112301006035504030c092c3d2b3c3e233b225c", 'CN=\\,\\=\\+\\<\\>\\#\\;\\"\\\\'),
        ("3010310e300c06035504030c05236c656164", "CN=\\#lead"),
        ("300e310c300a06035504030c03612362", "CN=a\\#b"),
        ("30123110300e06035504030c07202074776f2020", "CN=\\ \\ two\\ \\ "),
        ("300c310a300806035504030c0120", "CN=\\ "),
        ("300b3109300706035504030c00", "CN="),
        ("300e310c300a06035504030c030d780d", "CN=\\\rx\\\r"),
        ("300e310c300a06035504030c030a780a", "CN=\nx\n"),
        ("300e310c300a06035504030c03610062", "CN=a\\00b"),
        ("3021311f301d06035504030c164ac3bc7267656e204dc3bc6c6c657220e697a5e69cac", "CN=Jürgen Müller 日本"),
        ("300f310d300b06035504030c04f09f9880", "CN=😀"),
        ("30173115301306035504031e0c004a00fc007200670065006e", "CN=\\00J\\00�\\00r\\00g\\00e\\00n"),
        ("3011310f300d060355040314064afc7267656e", "CN=J�rgen"),
        ("3010310e300c06035504031405706c61696e", "CN=plain"),
        (
            "301f311d301b06035504031c14000000700000006c00000061000000690000006e",
            "CN=#1c14000000700000006c00000061000000690000006e",
        ),
        ("3010310e300c06035504031b05706c61696e", "CN=plain"),
        ("3010310e300c06035504031a05706c61696e", "CN=#1a05706c61696e"),
        ("300e310c300a06035504031203313233", "CN=#1203313233"),
        ("3010310e300c06035504031605706c61696e", "CN=plain"),
        ("300d310b300906035504030c02fffe", "CN=��"),
        ("300d310b300906035504031302fffe", "CN=��"),
        ("300c310a30080603550403020105", "CN=#020105"),
        (
            "30223114301206092a864886f70d01090116056140622e63310a300806035504030c0178",
            "CN=x,1.2.840.113549.1.9.1=#16056140622e63",
        ),
        (
            "3052310b3009060355040513023432310b3009060355040c0c024472310a3008060355042a0c0141310a300806035504040c"
            "01423112301006092b06010401868d1f010c036f776e310a300806038837030c0162",
            "2.999.3=#0c0162,1.3.6.1.4.1.99999.1=#0c036f776e,2.5.4.4=#0c0142,2.5.4.42=#0c0141,2.5.4.12=#0c024472,2.5.4.5=#13023432",
        ),
        (
            "302e31143012060355040a0c0b6127622863292d2e2f3a3f3116301406035504030c0d2a2e6578616d706c652e6f7267",
            "CN=*.example.org,O=a'b(c)-./:?",
        ),
        ("301c311a301806035504030c116140625f63212425267c7e605e7b7d5b5d", "CN=a@b_c!$%&|~`^{}[]"),
    ],
)
def test_names_are_those_of_java(der: str, name: str) -> None:
    # Behind tag and size of the outermost SEQUENCE.
    data = bytes.fromhex(der)
    assert name_of(data[2 if data[1] < 0x80 else 3 :]) == name


CERTIFICATE = ssl.PEM_cert_to_DER_cert(trustme.CA().issue_cert("alice.example.org").cert_chain_pems[0].bytes().decode())


def test_the_subject_of_a_certificate() -> None:
    name = subject_of(CERTIFICATE)
    # trustme names its certificates after the library and a random text.
    assert name.startswith("OU=Testing cert ")
    assert ",O=trustme v" in name


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "the certificate is empty"),
        (b"\x04\x00", "an element of tag 0x4 where 0x30 is expected"),
        (b"\x30\x02\x30\x00", "the certificate ends before its subject"),
        (b"\x30\x05\x30", "an element of the certificate ends at byte 7 of 3"),
        (b"\x30", "the size of an element of the certificate is wrong"),
        (b"\x30\x80", "the size of an element of the certificate is wrong"),
        (b"\x30\x85\x01\x01\x01\x01\x01", "the size of an element of the certificate is wrong"),
    ],
)
def test_what_is_no_certificate(data: bytes, sentence: str) -> None:
    with pytest.raises(CorruptData, match=sentence):
        subject_of(data)


@given(st.data())
def test_a_damaged_certificate_gives_a_name_or_an_error(data: st.DataObject) -> None:
    damaged = bytearray(CERTIFICATE[: data.draw(st.integers(0, len(CERTIFICATE)))])
    for position in data.draw(st.lists(st.integers(0, max(len(damaged) - 1, 0)), max_size=3)):
        if damaged:
            damaged[position] = data.draw(st.integers(0, 255))
    try:
        name = subject_of(bytes(damaged))
    except CorruptData:
        return
    assert isinstance(name, str)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("3003020100", "tag 0x30 where 0x31 is expected"),
        ("3100310230003100", "an attribute of a name has 0 parts, not type and value"),
        ("3106300406000c00", "an object identifier of the certificate ends too early"),
        (
            "3182010b3082010706820101" + "2a" + "81" * 255 + "010c00",
            "an object identifier of the certificate has 257 bytes",
        ),
        ("310730050601810c00", "an object identifier of the certificate ends too early"),
    ],
)
def test_what_is_no_name(name: str, sentence: str) -> None:
    with pytest.raises(CorruptData, match=sentence):
        name_of(bytes.fromhex(name))
