"""Which brokers are alive: sessions, and the probes of those whose process may be gone."""
