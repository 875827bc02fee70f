"""Numbers as people read them."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def format_count(count: int) -> str:
    """12345 → `12,345`."""
    return f"{count:,}"


def format_records(count: int) -> str:
    """`1 record`, `1,000 records`."""
    return f"{count:,} record{'' if count == 1 else 's'}"


def format_bytes(size_bytes: int) -> str:
    """Three digits or so: `999 B`, `1.5 KiB`, `23.4 MiB`."""
    if size_bytes < 1024:
        return f"{size_bytes} B"
    size = float(size_bytes)
    for unit in ("KiB", "MiB", "GiB"):
        size /= 1024
        if size < 1024:
            return f"{size:.1f} {unit}"
    return f"{size / 1024:.1f} TiB"


def format_seconds(seconds: float) -> str:
    """`12 ms`, `1.23 s`, `2 min 5 s`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.2f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"


def format_age(age_ms: int) -> str:
    """`now`, `3 s ago`, `2 min ago`, `5 h ago`, `3 days ago`."""
    seconds = age_ms // 1000
    if seconds < 1:
        return "now"
    if seconds < 120:
        return f"{seconds} s ago"
    minutes = seconds // 60
    if minutes < 120:
        return f"{minutes} min ago"
    hours = minutes // 60
    return f"{hours} h ago" if hours < 48 else f"{hours // 24} days ago"


def format_timestamp(timestamp_ms: int) -> str:
    """ISO 8601 in UTC with milliseconds: `2013-01-01T10:00:00.000Z`; the bare number where no calendar reaches."""
    try:
        moment = _EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return str(timestamp_ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
