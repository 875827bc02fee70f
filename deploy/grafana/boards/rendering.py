"""The JSON of a dashboard, as Grafana loads it."""

import json
from typing import Any, Final

from .expressions import ALL, ONE, RAFT
from .panel import Dashboard, Panel

WIDTH: Final = 24
HEIGHT: Final = 8


def render(dashboard: Dashboard) -> str:
    """The text of one."""
    return json.dumps(_dashboard(dashboard), indent=1, ensure_ascii=False) + "\n"


def _dashboard(dashboard: Dashboard) -> dict[str, Any]:
    panels: list[dict[str, Any]] = []
    top = 0
    for title, row in dashboard.rows:
        panels.append(
            {
                "type": "row",
                "title": title,
                "collapsed": False,
                "gridPos": {"x": 0, "y": top, "w": WIDTH, "h": 1},
                "panels": [],
            }
        )
        top += 1
        left, tallest = 0, 0
        for panel in row:
            width, height = (3, 4) if panel.kind == "stat" else (6, HEIGHT)
            if left + width > WIDTH:
                left, top = 0, top + tallest
                tallest = 0
            panels.append(_panel(panel, left, top, width, height))
            left, tallest = left + width, max(tallest, height)
        top += tallest
    for number, panel_json in enumerate(panels, start=1):
        panel_json["id"] = number
    return {
        "uid": f"penstock-{dashboard.name}",
        "title": dashboard.title,
        "tags": ["penstock"],
        "timezone": "browser",
        "schemaVersion": 39,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "graphTooltip": 1,
        "links": [
            {
                "type": "dashboards",
                "tags": ["penstock"],
                "asDropdown": True,
                "title": "Penstock",
                "includeVars": True,
                "keepTime": True,
            }
        ],
        "templating": {"list": _variables(dashboard)},
        "annotations": {"list": [_elections()] if dashboard.has_nodes else []},
        "panels": panels,
    }


def _variables(dashboard: Dashboard) -> list[dict[str, Any]]:
    chosen: list[dict[str, Any]] = [
        {"name": "datasource", "label": "Source", "type": "datasource", "query": "prometheus", "current": {}}
    ]
    if not dashboard.has_nodes:
        return chosen + [_variable(name, f"label_values({metric}, {name})") for name, metric in dashboard.variables]
    chosen += [
        _variable("cluster", 'label_values(up{job="penstock"}, cluster)'),
        _variable("instance", 'label_values(up{job="penstock",cluster=~"$cluster"}, instance)'),
    ]
    chosen += [
        _variable(name, f'label_values({metric}{{{ONE},{name}!=""}}, {name})') for name, metric in dashboard.variables
    ]
    return chosen


def _variable(name: str, query: str) -> dict[str, Any]:
    return {
        "name": name,
        "label": name.capitalize(),
        "type": "query",
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        # Also what has no such label.
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def _elections() -> dict[str, Any]:
    """A mark wherever another controller became active."""
    return {
        "name": "Active controller",
        "enable": True,
        "iconColor": "orange",
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "expr": f"max(changes({RAFT}current_leader{{{ALL}}}[1m])) > 0",
        "titleFormat": "Another node leads the metadata quorum",
    }


def _panel(panel: Panel, left: int, top: int, width: int, height: int) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"color": "green" if panel.warn or panel.bad else "text", "value": None}]
    steps += [{"color": "orange", "value": panel.warn}] if panel.warn is not None else []
    steps += [{"color": "red", "value": panel.bad}] if panel.bad is not None else []
    custom: dict[str, Any] = {"fillOpacity": 30 if panel.is_stacked else 8, "lineWidth": 1, "showPoints": "never"}
    if panel.is_stacked:
        custom["stacking"] = {"mode": "normal"}
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "gridPos": {"x": left, "y": top, "w": width, "h": height},
        "fieldConfig": {
            "defaults": {
                "unit": panel.unit,
                "min": 0 if panel.kind == "timeseries" else None,
                "custom": custom if panel.kind == "timeseries" else {},
                "thresholds": {"mode": "absolute", "steps": steps},
            },
            "overrides": [],
        },
        "options": _options(panel.kind),
        "targets": [
            {
                "refId": chr(65 + index),
                "expr": expression,
                "legendFormat": legend or "__auto",
                "datasource": {"type": "prometheus", "uid": "${datasource}"},
            }
            for index, (expression, legend) in enumerate(panel.queries)
        ],
    }


def _options(kind: str) -> dict[str, Any]:
    if kind == "stat":
        return {
            "reduceOptions": {"calcs": ["lastNotNull"]},
            "colorMode": "value",
            "graphMode": "none",
            "textMode": "value",
        }
    if kind == "state-timeline":
        return {"showValue": "never", "mergeValues": True}
    return {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi", "sort": "desc"}}
