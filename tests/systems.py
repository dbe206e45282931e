"""What Windows, or Wine in its place, does not have, and tests need: each of them is skipped there, with the reason.

By the file in this folder, and by the name of the test; an asterisk stands for all tests of the file.
"""

import _thread
import ctypes
import signal
import sys
import threading

WINDOWS = sys.platform == "win32"
WINE = WINDOWS and hasattr(ctypes.windll.ntdll, "wine_get_version")

KILL = signal.SIGTERM if WINDOWS else signal.SIGKILL
"""The signal that no process can catch; on Windows, `os.kill` ends a process at once."""


def signal_main_thread(number: int) -> None:
    """Let a signal come to the main thread from another one; on Windows, as Ctrl-C does."""
    if WINDOWS:
        _thread.interrupt_main(number)
    else:
        signal.pthread_kill(threading.main_thread().ident, number)


_MODES = "modes and the umask are those of POSIX; files/test_access.py is for access lists too"
_LIMITS = "Windows has no limit on the size of files"
_FORK = "the process is copied by fork"
_SIGNALS = "a process of Windows does not end by a signal, and has no process group of POSIX"
_FLUSH = "Windows flushes files, not the names in a folder"
_OPEN = "an open file can neither be replaced nor removed on Windows"
_LINKS = "Wine says that it has made a symbolic link, and makes none"

NOT_ON_WINDOWS = {
    "files/test_file_modes.py": {"*": _MODES},
    "files/test_files.py": {
        "test_only_the_owner_can_read_a_file_in_the_making_and_the_umask_decides_afterwards": _MODES,
        "test_replacing_a_closed_file_does_not_open_it": _MODES,
        "test_running_out_of_room_names_the_file_and_leaves_nothing": _LIMITS,
        "test_a_kill_between_two_renames_leaves_no_description_beside_another_table": _FORK,
    },
    "app/test_runs.py": {
        "test_a_child_that_crashes_leaves_a_message": _SIGNALS,
        "test_signals_of_the_terminal_are_for_the_server": _SIGNALS,
    },
    "engines/disk/test_damaged_scratch.py": {"test_a_complete_stage_is_on_the_disk_before_its_note_is": _FLUSH},
    "cli/test_ctrl_c.py": {"test_the_system_may_end_it_too": _SIGNALS},
    "cli/test_bad_input.py": {"test_a_disk_that_is_full": _LIMITS},
    "stream/test_stream.py": {"test_the_old_checkpoint_stays_when_the_disk_is_full": _LIMITS},
    "incremental/test_collection.py": {"test_begin_without_room_on_the_disk_says_so": _LIMITS},
    "sources/test_clean.py": {"test_a_full_disk_is_named_as_the_reason": _LIMITS},
    "output/test_writing.py": {"test_an_input_that_changes_under_a_release_is_noticed": _OPEN},
}
NOT_IN_WINE = {
    "app/test_folders.py": {
        "test_no_path_leaves_the_folder": _LINKS,
        "test_a_link_within_the_folder_is_followed": _LINKS,
        "test_links_that_leave_the_folder_are_not_listed": _LINKS,
    },
    "engines/disk/test_disk_records.py": {
        "test_a_scratch_folder_that_others_may_have_made_is_refused": _LINKS,
    },
    "files/test_files.py": {
        "test_a_link_stays_and_the_file_it_leads_to_is_replaced": _LINKS,
        "test_a_link_that_leads_nowhere_is_not_overwritten": _LINKS,
        "test_what_is_read_is_never_written_to": _LINKS,
    },
    "output/test_writing.py": {
        "test_no_command_writes_over_what_it_reads": _LINKS,
        "test_no_command_writes_over_a_hierarchy_that_it_reads": _LINKS,
        "test_no_command_writes_over_a_job_a_manifest_or_a_collection_that_it_reads": _LINKS,
    },
}


def reason_to_skip(file: str, test: str) -> str | None:
    """Return why a test of a file cannot run here, None if it can."""
    tables = [*([NOT_ON_WINDOWS] if WINDOWS else []), *([NOT_IN_WINE] if WINE else [])]
    found = [table[file].get(test, table[file].get("*")) for table in tables if file in table]
    return next((reason for reason in found if reason is not None), None)
