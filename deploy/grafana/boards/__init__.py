"""Grafana dashboards as code, one module each."""
