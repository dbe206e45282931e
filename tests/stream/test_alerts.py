"""The alerts of examples/operations, by the tool of Prometheus itself."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

ALERTS = Path(__file__).parents[2] / "examples" / "operations" / "alerts.yml"
pytestmark = pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool on this machine")


def status_of(stream, status, values, instance="one"):
    labels = f'stream="{stream}",group="shoal",instance="{instance}",status="{status}"'
    return {"series": f"shoal_status{{{labels}}}", "values": values}


def metric(name, values, stream="visits", **labels):
    labels = {"stream": stream, "group": "shoal", **labels}
    spelled = ",".join(f'{label}="{value}"' for label, value in labels.items())
    return {"series": f"shoal_{name}{{{spelled}}}", "values": values}


BOTH_WORK = [status_of("visits", "working", "1x60"), status_of("orders", "working", "1x60")]
CASES = {
    "nobody has ever worked": ([], "ShoalNobodyWorks", [{}]),
    "every worker is gone": (
        [status_of("visits", "working", "1x5"), status_of("orders", "working", "1x5")],
        "ShoalNobodyWorks",
        ["visits", "orders"],
    ),
    "one of two streams has lost its worker": (
        [status_of("visits", "working", "1x5"), BOTH_WORK[1]],
        "ShoalNobodyWorks",
        ["visits"],
    ),
    "one of two streams has only somebody who stands by": (
        [status_of("visits", "working", "0x60"), status_of("visits", "standing-by", "1x60"), BOTH_WORK[1]],
        "ShoalNobodyWorks",
        ["visits"],
    ),
    "another has taken over": (
        [status_of("visits", "working", "1x5"), status_of("visits", "working", "0x5 1x55", "two"), BOTH_WORK[1]],
        "ShoalNobodyWorks",
        [],
    ),
    "a pipe works, and both workers": (
        [*BOTH_WORK, {"series": 'shoal_status{stream="stdin",status="working"}', "values": "0x60"}],
        "ShoalNobodyWorks",
        [],
    ),
    "many tuples of a small stream go aside": (
        [
            metric("tuples_in_total", "0+100x60"),
            metric("tuples_side_total", "0+2x60", reason="missing-value"),
            metric("tuples_side_total", "0+3x60", reason="not-a-date"),
            metric("tuples_in_total", "0+100000x60", "orders"),
            metric("tuples_side_total", "0+1x60", "orders", reason="missing-value"),
        ],
        "ShoalManyGoAside",
        ["visits"],
    ),
    "redis is away": ([metric("status", "1x60", status="outage")], "ShoalOutage", [{"status": "outage"}]),
    "the consumer does not read": (
        [metric("status", "1x60", status="blocked")],
        "ShoalOutage",
        [{"status": "blocked"}],
    ),
    "entries are lost": ([metric("lost_entries_total", "0x50 7x10")], "ShoalEntriesLost", ["visits"]),
    "the lag grows": ([metric("lag_entries", "0+9000x60")], "ShoalLagGrows", ["visits"]),
    "the lag shrinks": ([metric("lag_entries", "900000-9000x60")], "ShoalLagGrows", []),
    "tuples are old": ([metric("oldest_tuple_age_seconds", "0+60x60")], "ShoalTuplesAreOld", ["visits"]),
}


def test_every_alert_fires_when_it_should_and_for_the_stream_it_concerns(tmp_path):
    tests = []
    for series, alert, expected in CASES.values():
        labels = [{"stream": one, "group": "shoal"} if isinstance(one, str) else one for one in expected]
        labels = [one if one == {} else {"stream": "visits", "group": "shoal", **one} for one in labels]
        alerts = [{"exp_labels": one} for one in labels]
        rule = {"eval_time": "55m", "alertname": alert, "exp_alerts": alerts}
        tests.append({"interval": "1m", "input_series": series, "alert_rule_test": [rule]})
    path = tmp_path / "test.yml"  # JSON is YAML
    path.write_text(json.dumps({"rule_files": [str(ALERTS)], "evaluation_interval": "1m", "tests": tests}))
    checked = subprocess.run(["promtool", "check", "rules", ALERTS], capture_output=True, text=True, check=False)
    tested = subprocess.run(["promtool", "test", "rules", path], capture_output=True, text=True, check=False)

    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert {alert for _, alert, _ in CASES.values()} == set(alerts_in(ALERTS.read_text()))


def alerts_in(text):
    return [line.split("alert:")[1].strip() for line in text.splitlines() if "alert:" in line]
