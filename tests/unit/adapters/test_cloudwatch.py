"""Metrics as log lines in CloudWatch's embedded metric format."""

import json

from mats.adapters.cloudwatch import CloudWatchMetrics
from mats.ports import Measure

SOME = {"Answers": Measure(1, "Count"), "TotalMs": Measure(41.5, "Milliseconds"), "Usd": Measure(0.0001, "None")}


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
    assert {name: line[name] for name in SOME} == {"Answers": [1.0], "TotalMs": [41.5], "Usd": [0.0001]}
    assert isinstance(line["_aws"]["Timestamp"], int)


def test_nothing_of_one_answer_is_in_the_line_of_the_next(capsys):
    metrics = CloudWatchMetrics("mats", "discovery")
    metrics(SOME)
    metrics({"Failed": Measure(1, "Count")})
    first, second = lines(capsys)
    assert "Failed" not in first
    assert not second.keys() & SOME.keys()


def test_a_truth_value_counts_as_nought_or_one(capsys):
    CloudWatchMetrics("mats", "discovery")({"Yes": Measure(True, "Count"), "No": Measure(False, "Count")})
    (line,) = lines(capsys)
    assert (line["Yes"], line["No"]) == ([1.0], [0.0])


def test_dimensions_are_added_to_the_services_name(capsys):
    CloudWatchMetrics("mats", "enrichment")({"ModelRefused": Measure(3, "Count")}, {"model": "lite", "role": "writer"})
    (line,) = lines(capsys)
    (told,) = line["_aws"]["CloudWatchMetrics"]
    assert sorted(told["Dimensions"][0]) == ["model", "role", "service"]
    assert (line["model"], line["role"], line["ModelRefused"]) == ("lite", "writer", [3.0])
