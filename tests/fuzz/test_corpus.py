"""The corpus of the fuzzers, read again: every file is read or refused, and nothing else happens."""

import pytest
from targets import CORPUS, TARGETS

FILES = {name: sorted((CORPUS / name).iterdir()) for name in TARGETS}


@pytest.mark.parametrize("name", TARGETS)
def test_every_file_of_the_corpus_is_read_or_refused(name):
    for path in FILES[name]:
        try:
            TARGETS[name](path.read_bytes())
        except BaseException as error:
            error.add_note(f"while reading {path.name}")
            raise


def test_the_corpus_is_small_enough_for_every_checkout():
    sizes = [path.stat().st_size for files in FILES.values() for path in files]

    assert all(FILES.values())
    assert sum(sizes) < 200_000
    assert len(sizes) < 200
