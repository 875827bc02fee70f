"""Where what is fetched or built once is kept, outside the source tree."""

from ..client.cached_programs import cache_folder

__all__ = ["cache_folder"]
