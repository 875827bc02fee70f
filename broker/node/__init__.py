"""One node put together: wiring, start and stop, registration and life cycle."""
