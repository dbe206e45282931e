import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reported import hostile, release

from shoal.output.report import figures
from shoal.output.report.facts import gather

SVG = "{http://www.w3.org/2000/svg}"


def parsed(picture):
    """Parse a picture as XML, with the name space that a page adds by itself."""
    return ET.fromstring(str(picture).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))


def pictures(facts):
    return [
        figures.shoal_figure(facts["verdict"]["smallest"], True),
        figures.class_size_figure(facts["class_sizes"], facts["verdict"]["k"]),
        *filter(None, map(figures.distribution_figure, facts["distributions"])),
        *(picture for _, picture in figures.correlation_figures(facts["correlations"])),
        figures.gauge(20.0, 15.0),
        figures.share_bar(0.3, "a share"),
    ]


@pytest.mark.parametrize("source", [release, hostile])
def test_every_picture_is_well_formed_and_says_what_it_shows(source):
    for picture in pictures(gather(source())):
        root = parsed(picture)

        assert root.find(f"{SVG}title").text
        assert root.get("aria-label")
        assert root.get("role") == "img"


@pytest.mark.parametrize("source", [release, hostile])
def test_everything_drawn_lies_within_the_picture(source):
    for picture in pictures(gather(source())):
        root = parsed(picture)
        _, _, width, height = map(float, root.get("viewBox").split())
        for box in root.iter(f"{SVG}rect"):
            x, y, w, h = (float(box.get(name)) for name in ("x", "y", "width", "height"))
            assert x >= -0.01
            assert y >= -0.01
            assert x + w <= width + 0.02
            assert y + h <= height + 0.02


def test_the_areas_of_a_histogram_are_the_shares_of_the_bins():
    bins = [
        {"from": "0", "to": "1", "units": 1, "after": 10},
        {"from": "1", "to": "4", "units": 3, "after": 30},
        {"from": "4", "to": "5", "units": 1, "after": 20},
    ]
    root = parsed(figures.histogram({"name": "a", "scale": "linear", "bins": bins}))
    heights = [float(box.get("height")) for box in root.iter(f"{SVG}rect") if box.get("class") == "after"]

    assert heights[0] == pytest.approx(heights[1], abs=0.02)
    assert heights[2] == pytest.approx(2 * heights[0], abs=0.02)


def test_bars_are_as_long_as_the_shares():
    rows = [{"category": name, "before": 10 * n, "after": 20 * n} for name, n in (("a", 3), ("b", 1))]
    root = parsed(figures.bars({"name": "c", "bars": rows}))
    for side in ("before", "after"):
        lengths = [float(box.get("width")) for box in root.iter(f"{SVG}rect") if box.get("class") == side]
        assert lengths[0] == pytest.approx(3 * lengths[1], abs=0.02)


def test_groups_below_k_stand_out_and_the_limit_stands_between():
    sizes = [
        {"from": 2, "to": 2, "classes": 4, "records": 8, "below_k": True},
        {"from": 3, "to": 9, "classes": 5, "records": 20, "below_k": False},
    ]
    root = parsed(figures.class_size_figure(sizes, 3))
    bars = {box.get("class"): float(box.get("x")) for box in root.iter(f"{SVG}rect")}
    (limit,) = (line for line in root.iter(f"{SVG}line") if line.get("class") == "limit")

    assert bars["bad"] < float(limit.get("x1")) < bars["after"]


@given(st.integers(1, 10**6))
def test_the_shoal_has_as_many_fish_as_hide_one_another_up_to_sixty(n_fish):
    root = parsed(figures.shoal_figure(n_fish, holds=True))
    classes = [fish.get("class") for fish in root.iter(f"{SVG}path")]

    assert len(classes) == min(n_fish, 60)
    assert classes.count("fish sought") == 1
