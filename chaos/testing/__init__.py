"""What a test holds in hand when it breaks a cluster: pytest, unittest, or a plain context manager."""
