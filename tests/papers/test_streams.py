import json

import pytest
from papers_shell import papers_command

from papers import streams


def test_figure_3_has_the_numbers_of_the_design():
    points = {point.weight: point for point in streams.figure_3((0.0, 0.02, 1.0))}

    assert [round(point.mse, 4) for point in points.values()] == [0.0080, 0.0265, 0.0652]
    assert [point.spread_max for point in points.values()] == [100, 31, 9]
    assert points[0.0].displacement_max == 81
    assert [round(point.difference_mean, 1) for point in points.values()] == [37.6, 7.5, 3.7]
    assert points[1.0].displacement_max == 0


def test_loss_rises_and_reordering_falls_with_the_weight():
    points = list(streams.figure_3((0.0, 0.01, 0.02, 0.05)))

    assert [point.mse for point in points] == sorted(point.mse for point in points)
    assert [point.displacement_mean for point in points] == sorted((p.displacement_mean for p in points), reverse=True)


@pytest.mark.parametrize("case", [(2, 1), (10, 2)])
def test_adversarial_streams_find_the_threshold_of_proposition_2(case):
    (threshold,) = streams.proposition_2([case])

    assert threshold.found == pytest.approx(threshold.proved, abs=1e-6)


def test_the_command_prints_one_table_each_and_writes_numbers_and_picture(tmp_path):
    done = papers_command("streams", "--output", str(tmp_path))

    assert done.exit_code == 0, done.stderr
    assert "80 / 25.0" in done.stdout
    assert "0.7 cannot be a mean of position differences within cells of 10" in " ".join(done.stdout.split())
    assert {path.name for path in tmp_path.iterdir()} == {"streams.json", "streams-figure-3.png"}
    assert len(json.loads((tmp_path / "streams.json").read_text())["figure_3"]) == len(streams.WEIGHTS)
