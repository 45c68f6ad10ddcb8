"""The dashboard asks for metrics that there are, by labels that they have."""

import json
import re

from tests.docs.reference.metrics import counted
from tests.docs.test_quickstart import ROOT

DASHBOARD = ROOT / "examples" / "grafana" / "carnet.json"


def test_the_dashboard_asks_for_what_is_there() -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    known = {
        sample.name: set(sample.labels)
        for family in counted().registry.collect()
        for sample in family.samples
    }
    asked = [target["expr"] for panel in panels for target in panel["targets"]]
    assert len(asked) > 10
    for expression in asked:
        names = re.findall(r"\bcarnet_\w+", expression)
        assert names
        labels = {
            label
            for group in re.findall(r"by \(([^)]*)\)", expression)
            for label in group.split(", ")
        }
        for name in names:
            assert name in known, expression
            assert labels <= known[name], expression


def test_everything_that_is_charged_is_on_it() -> None:
    text = DASHBOARD.read_text()
    for name in ("carnet_cost_total", "carnet_peer_cost_total", "carnet_tokens_total"):
        assert name in text
