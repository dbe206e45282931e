import subprocess
import sys

from shell import is_one_paragraph, shoal_command


def test_a_folder_that_does_not_exist_is_refused(tmp_path):
    result = shoal_command("app", "--no-browser", "--folder", tmp_path / "none")

    assert result.exit_code == 2
    assert is_one_paragraph(result.stderr)
    assert "does not exist" in result.stderr


def test_a_file_that_cannot_be_opened_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    result = shoal_command("app", "--no-browser", "none.csv")

    assert result.exit_code == 2
    assert is_one_paragraph(result.stderr)
    assert "'none.csv' does not exist" in result.stderr


def test_without_the_extra_the_message_says_what_to_install():
    code = "import sys; sys.modules['starlette'] = None; from shoal.cli import main; main(['app'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert "shoal-privacy[app]" in done.stderr


def test_there_is_no_option_to_listen_elsewhere():
    help_ = shoal_command("app", "--help").output

    assert "--host" not in help_
    assert "--port" not in help_
