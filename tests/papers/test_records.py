"""The lowest losses, as they are printed and saved."""

import json

import pytest
from papers_shell import papers_command


def test_every_set_gets_a_line_and_the_losses_fall_from_left_to_right(tmp_path):
    outcome = papers_command("records", "-k", "10", "--seconds", "0.5", "--output", tmp_path)
    lines = json.loads((tmp_path / "records.json").read_text())["records"]

    assert outcome.exit_code == 0
    assert [line["name"] for line in lines] == ["census", "tarragona", "eia-11"]
    assert [line["mdav"] for line in lines] == pytest.approx([14.1559, 33.1929, 3.8397], abs=5e-5)
    assert all(line["auto"] < line["mdav"] and line["best"] < line["mdav"] for line in lines)
    assert all(f"{line['auto']:.4f}" in outcome.output for line in lines)
    assert all(printed in outcome.output for printed in ("14.16", "33.19", "3.84", "13.959", "33.088"))
    assert outcome.output.count(" yes ") == 3


def test_sizes_that_are_no_numbers_are_refused():
    outcome = papers_command("records", "-k", "3,x")

    assert outcome.exit_code == 2
    assert "whole numbers" in outcome.output
