"""The subject of a certificate as a name: what Java's `X500Principal.getName()` makes of it, RFC 2253.

    Certificate    ::= SEQUENCE { tbsCertificate SEQUENCE { [0] version OPTIONAL, serialNumber INTEGER,
                       signature SEQUENCE, issuer Name, validity SEQUENCE, subject Name, … }, … }
    Name           ::= SEQUENCE OF SET OF SEQUENCE { type OBJECT IDENTIFIER, value ANY }

The last relative name comes first; types without a keyword in RFC 2253, such as emailAddress, are numbers and their
values `#` and the hexadecimal DER. ACLs and `ssl.principal.mapping.rules` are written for exactly this form, which
Python's `ssl` does not keep all of. The certificate is one that TLS has verified.
"""

from collections.abc import Iterator
from typing import Final

from ....protocol.errors import CorruptData

_SEQUENCE: Final = 0x30
_SET: Final = 0x31
_OBJECT_IDENTIFIER: Final = 0x06
_VERSION: Final = 0xA0
_OBJECT_IDENTIFIER_BYTES_MAX: Final = 256
"""Real ones have a dozen; the text of a huge number takes long."""
_SUBJECT_INDEX: Final = 4
"""In tbsCertificate, behind the version."""
# UTF8String, PrintableString, T61String, IA5String, GeneralString, BMPString: Java reads the bytes of all as UTF-8.
_STRINGS: Final = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E})
_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
# RFC 2253, section 2.4, and two more that Java escapes everywhere: `=` and `#`.
_ESCAPES: Final = {**{ord(one): f"\\{one}" for one in ',=+<>#;"\\'}, 0: "\\00"}
_BLANKS: Final = " \r"


def subject_of(certificate: bytes) -> str:
    """The name of a DER certificate's subject; empty for one without. Raises CorruptData."""
    whole = _first(certificate)
    signed = _first(whole)
    fields = [(tag, content) for tag, content in _elements(signed) if tag != _VERSION]
    if len(fields) <= _SUBJECT_INDEX:
        raise CorruptData("the certificate ends before its subject")
    return name_of(_expect(fields[_SUBJECT_INDEX], _SEQUENCE))


def name_of(name: bytes) -> str:
    """The text of what is in the SEQUENCE of a Name. Raises CorruptData."""
    relative_names = ["+".join(_attributes(_expect(one, _SET))) for one in _elements(name)]
    return ",".join(reversed(relative_names))


def _attributes(relative_name: bytes) -> Iterator[str]:
    for one in _elements(relative_name):
        parts = list(_elements(_expect(one, _SEQUENCE)))
        if len(parts) != 2:
            raise CorruptData(f"an attribute of a name has {len(parts)} parts, not type and value")
        number = _object_identifier(_expect(parts[0], _OBJECT_IDENTIFIER))
        tag, content = parts[1]
        keyword = _KEYWORDS.get(number)
        if keyword is None or tag not in _STRINGS:
            yield f"{keyword or number}=#{(bytes((tag,)) + _length(len(content)) + content).hex()}"
        else:
            yield f"{keyword}={_escaped(content.decode(errors='replace'))}"


def _escaped(text: str) -> str:
    stripped = text.strip(_BLANKS)
    start = text.index(stripped) if stripped else len(text)
    lead, trail = text[:start], text[start + len(stripped) :]
    # Java's backslashes before blanks at both ends.
    return f"{_each_escaped(lead)}{stripped.translate(_ESCAPES)}{_each_escaped(trail)}"


def _each_escaped(blanks: str) -> str:
    return "".join(f"\\{one}" for one in blanks)


def _elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Tag and content of each element of DER. Raises CorruptData."""
    position = 0
    while position < len(data):
        tag = data[position]
        size, start = _size(data, position + 1)
        end = start + size
        if end > len(data):
            raise CorruptData(f"an element of the certificate ends at byte {end} of {len(data)}")
        yield tag, data[start:end]
        position = end


def _size(data: bytes, position: int) -> tuple[int, int]:
    """The size that is written at `position`, and where the content begins."""
    first = data[position] if position < len(data) else 0xFF
    if first < 0x80:
        return first, position + 1
    count = first & 0x7F
    end = position + 1 + count
    # No certificate that a handshake can carry has more than 2^32 bytes.
    if not 1 <= count <= 4 or end > len(data):
        raise CorruptData("the size of an element of the certificate is wrong")
    return int.from_bytes(data[position + 1 : end], "big"), end


def _length(size: int) -> bytes:
    if size < 0x80:
        return bytes((size,))
    count = (size.bit_length() + 7) // 8
    return bytes((0x80 | count,)) + size.to_bytes(count, "big")


def _object_identifier(content: bytes) -> str:
    if len(content) > _OBJECT_IDENTIFIER_BYTES_MAX:
        raise CorruptData(f"an object identifier of the certificate has {len(content)} bytes")
    if not content or content[-1] & 0x80:
        raise CorruptData("an object identifier of the certificate ends too early")
    numbers, number = [], 0
    for byte in content:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _expect(element: tuple[int, bytes], tag: int) -> bytes:
    if element[0] != tag:
        raise CorruptData(f"the certificate has an element of tag {element[0]:#x} where {tag:#x} is expected")
    return element[1]


def _first(data: bytes) -> bytes:
    for element in _elements(data):
        return _expect(element, _SEQUENCE)
    raise CorruptData("the certificate is empty")
