"""Values that most responses hold."""

from datetime import timedelta

from kio.static.primitive import i32Timedelta

NO_THROTTLE = i32Timedelta.parse(timedelta(0))
"""There are no quotas, so nothing is ever throttled."""
