"""Plots as files: SVG, and PNG and PDF of the same picture by matplotlib."""

import re
import sys
from xml.etree import ElementTree

import pyarrow as pa
import pytest
from click.testing import CliRunner

import shoal
from shoal.cli import main

pytestmark = pytest.mark.filterwarnings("ignore::shoal.ShoalWarning")
BAD = "<b>$\\frac{1}{2}$"
PLANTED = 987_654_321
PEOPLE = pa.table({"age": [*range(20, 59), PLANTED], BAD: [*"abcd"] * 10})
ROLES = {"quasi_identifiers": ["age"], "other": [BAD], "accept": ["outliers", "missing-code"]}
STARTS = {".svg": b"<svg xmlns=", ".png": b"\x89PNG", ".pdf": b"%PDF"}


@pytest.fixture(scope="module")
def release():
    return shoal.anonymize(
        PEOPLE, k=4, seed=1, quasi_identifiers=["age"], other=[BAD], accept=["outliers", "missing-code"]
    )


@pytest.fixture(scope="module")
def plots(release):
    comparison = shoal.compare(PEOPLE, k=[4, 8], methods=["mdav"], seed=1, **ROLES)
    return {
        "map": comparison.plot,
        "sizes": release.plot,
        "histogram": lambda path, **more: release.plot(path, "age", **more),
        "bars": lambda path, **more: release.plot(path, BAD, **more),
    }


@pytest.mark.parametrize("ending", STARTS)
@pytest.mark.parametrize("what", ["map", "sizes", "histogram", "bars"])
def test_every_plot_is_a_file_of_every_kind(plots, what, ending, tmp_path):
    if ending != ".svg":
        pytest.importorskip("matplotlib")
    path, again = tmp_path / f"one{ending}", tmp_path / f"two{ending}"
    plots[what](path)
    plots[what](again)

    assert path.read_bytes().startswith(STARTS[ending])
    assert path.read_bytes() == again.read_bytes()
    if ending == ".svg":
        ElementTree.parse(path)
        assert str(PLANTED) not in path.read_text(encoding="utf-8")
        assert re.findall(r"href|url\(|@import", path.read_text(encoding="utf-8")) == []
    with pytest.raises(shoal.FileError, match="exists"):
        plots[what](path)
    plots[what](path, force=True)


def test_the_public_form_draws_nothing_of_the_original(release, tmp_path):
    release.plot(tmp_path / "internal.svg", "age")
    release.plot(tmp_path / "public.svg", "age", form="public")
    internal, public = ((tmp_path / f"{form}.svg").read_text(encoding="utf-8") for form in ("internal", "public"))

    assert 'class="before"' in internal
    assert 'class="before"' not in public


def test_a_png_is_drawn_in_the_colours_of_the_svg(release, tmp_path):
    image = pytest.importorskip("matplotlib.image")
    release.plot(tmp_path / "sizes.png")
    pixels = image.imread(tmp_path / "sizes.png")[:, :, :3]
    bars = abs(pixels - [0x5F / 255, 0xB2 / 255, 0xC1 / 255]).max(axis=2) < 0.01

    assert pixels.shape == (500, 2080, 3)
    assert bars.mean() > 0.05
    assert (pixels[0, -1] == 1).all()


def test_what_cannot_be_drawn_is_refused_before_anything_is_written(release, tmp_path, monkeypatch):
    with pytest.raises(shoal.FileError, match=r"Choose a name that ends in \.svg, \.png, \.pdf"):
        release.plot(tmp_path / "sizes.gif")
    with pytest.raises(shoal.ParameterError, match=r"Column 'agee' is not published\. Did you mean 'age'\?"):
        release.plot(tmp_path / "age.svg", "agee")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(shoal.ParameterError, match=r"need matplotlib, which is not installed: pip install .*\[plots\]"):
        release.plot(tmp_path / "sizes.png")

    assert list(tmp_path.iterdir()) == []


def test_commands_draw_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shoal.sources.write(PEOPLE.select([BAD]).rename_columns(["town"]), "people.csv")
    drawn = CliRunner().invoke(main, ["audit", "people.csv", "--quasi-identifiers", "town", "--plot", "sizes.svg"])
    refused = CliRunner().invoke(main, ["audit", "people.csv", "--quasi-identifiers", "town", "--plot", "sizes.svg"])
    compared = CliRunner().invoke(
        main, ["compare", "people.csv", "-k", "5", "--methods", "mdav", "--quasi-identifiers", "town", "-o", "map.svg"]
    )

    assert drawn.exit_code == 0, drawn.output
    assert compared.exit_code == 0, compared.output
    assert refused.exit_code != 0
    assert (tmp_path / "sizes.svg").read_bytes().startswith(b"<svg")
    assert (tmp_path / "map.svg").read_bytes().startswith(b"<svg")
