"""Metrics as log lines in CloudWatch's embedded metric format."""

import json

from mats.adapters.cloudwatch import CloudWatchMetrics
from mats.ports import Measure

SOME = {"Answers": Measure(True, "Count"), "TotalMs": Measure(41.5, "Milliseconds"), "Usd": Measure(0.0001, "None")}


def lines(capsys) -> list[dict]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_measures_of_one_call_are_one_line_with_namespace_and_service(capsys):
    CloudWatchMetrics("mats-test", "discovery")(SOME)
    (line,) = lines(capsys)
    (told,) = line["_aws"]["CloudWatchMetrics"]
    assert (told["Namespace"], told["Dimensions"], line["service"]) == ("mats-test", [["service"]], "discovery")
    assert {metric["Name"]: metric["Unit"] for metric in told["Metrics"]} == {
        "Answers": "Count", "TotalMs": "Milliseconds", "Usd": "None",
    }  # fmt: skip
    assert [repr(line[name]) for name in SOME] == ["[1.0]", "[41.5]", "[0.0001]"]
    assert isinstance(line["_aws"]["Timestamp"], int)


def test_dimensions_are_added_to_the_services_name(capsys):
    CloudWatchMetrics("mats", "enrichment")({"ModelRefused": Measure(3, "Count")}, {"model": "lite", "role": "writer"})
    (line,) = lines(capsys)
    (told,) = line["_aws"]["CloudWatchMetrics"]
    assert sorted(told["Dimensions"][0]) == ["model", "role", "service"]
    assert (line["model"], line["role"], line["ModelRefused"]) == ("lite", "writer", [3.0])
