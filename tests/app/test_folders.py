import io
import os

import pytest

from shoal.app.folders import Folders
from shoal.errors import FileError
from shoal.system import system


@pytest.fixture
def places(tmp_path):
    root = tmp_path / "data"
    (root / "sub").mkdir(parents=True)
    (root / "people.csv").write_text("a\n1\n")
    (root / "sub" / "more.parquet").write_text("")
    (root / "note.md").write_text("")
    (tmp_path / "outside.csv").write_text("a\n1\n")
    found = Folders(root, tmp_path / "state")
    yield found
    found.close()


@pytest.mark.parametrize(
    "path", ["../outside.csv", "sub/../../outside.csv", "/etc/passwd", "link.csv", "folder/outside.csv", "a\0b", "~/x"]
)
def test_no_path_leaves_the_folder(places, path):
    (places.root / "link.csv").symlink_to(places.root.parent / "outside.csv")
    (places.root / "folder").symlink_to(places.root.parent)
    if path == "~/x":
        assert places.inside(path) == places.root / "~" / "x"  # no shell expands it
        return

    with pytest.raises(FileError) as refused:
        places.inside(path)
    assert str(places.root) not in str(refused.value)


def test_a_link_within_the_folder_is_followed(places):
    (places.root / "link.csv").symlink_to(places.root / "people.csv")

    assert places.inside("link.csv") == places.root / "people.csv"


def test_links_that_leave_the_folder_are_not_listed(places):
    (places.root / "link.csv").symlink_to(places.root.parent / "outside.csv")
    listed = places.listed()

    assert listed.tables == ["people.csv"]
    assert listed.folders == ["sub"]
    assert places.listed("sub").tables == [os.path.join("sub", "more.parquet")]
    assert places.listed("sub").above == ""


def test_an_upload_is_readable_by_its_owner_alone_and_removed_at_the_end(tmp_path):
    (tmp_path / "data").mkdir()
    places = Folders(tmp_path / "data", tmp_path / "state")
    path = places.keep("../../evil name.csv", io.BytesIO(b"a\n1\n"))

    assert path.is_relative_to(places.uploads)
    assert path.name == "evil_name.csv"
    assert system.is_private(path)
    assert system.is_private(path.parent)
    assert places.inside(str(path)) == path
    places.close()
    assert not path.exists()


def test_uploads_of_an_app_that_was_killed_are_removed_at_the_next_start(places, tmp_path):
    old = Folders(places.root, tmp_path / "other")
    path = old.keep("a.csv", io.BytesIO(b"a\n"))
    os.close(old._lock)  # as the system does when a process ends
    again = Folders(places.root, tmp_path / "other")

    assert not path.exists()
    again.close()


def test_an_upload_of_an_unknown_format_is_refused(places):
    with pytest.raises(FileError, match="extension"):
        places.keep("virus.exe", io.BytesIO(b""))
