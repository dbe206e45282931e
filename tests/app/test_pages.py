"""The pages without a browser: every step as forms alone, with scripts off."""

import csv
import errno
import json
import os
import re
import tomllib
import warnings

import pyarrow as pa
import pyarrow.csv
import pytest
from shell_message import refused
from steward import ORIGIN, PEOPLE, ROLES, SECRETS, Inline, Steward, text_of

from shoal.app.draft import Draft
from shoal.errors import ShoalWarning
from shoal.job import Job
from shoal.release import run


def test_a_file_becomes_a_release_by_forms_alone(ready, folder):
    page = ready.release()
    job = Job.from_toml(ready.get(f"{ready.base}/job.toml").text)
    made = (folder / "release.csv").read_bytes()
    elsewhere = job.output.model_copy(update={"path": "again.csv", "report": None})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        again = run(job.model_copy(update={"output": elsewhere}))

    assert "Every record hides among at least 5" in page
    assert again.verdict.holds
    assert (folder / "again.csv").read_bytes() == made
    assert sorted(path.name for path in folder.iterdir() if path.name.startswith("release")) == [
        "release.csv",
        "release.csv.internal.json",
        "release.csv.public.json",
        "release.job.toml",
        "release.public.html",
        "release.report.html",
    ]


def test_no_page_shows_a_value_before_consent_and_pages_do_after(ready):
    ready.release()
    steps = ("file", "columns", "columns/0", "protection", "release", "closer", "history")
    hidden = "".join(ready.settle(step) for step in steps)
    ready.post("values", show="yes", back="file")
    shown = ready.settle("file")
    ready.post("closer/records", which="lost")
    records = ready.settle("closer")
    ready.post("values", show="no")

    assert [secret for secret in SECRETS if secret in hidden] == []
    assert "Zyxwv0" in shown
    assert "→" in records
    assert "Zyxwv0" not in ready.settle("file")
    assert not list((ready.state).rglob("*preview*"))


def test_nothing_is_decided_without_the_steward(steward):
    steward.open("people.csv")
    page = text_of(steward.page("columns"))

    assert "6 columns of 6 have no role yet" in page
    assert "Proposed: Leave out" in page
    assert steward.work.draft.roles == Draft().roles


def test_all_proposals_are_taken_at_once(steward):
    steward.open("people.csv")
    steward.post("columns", propose="yes", **{f"role-{number}": "" for number in range(6)})
    roles = steward.work.draft.roles

    assert roles.identifiers == ("name", "age")  # every age is different here
    assert roles.quasi_identifiers == ("zip", "sex", "income")
    assert roles.confidential == ("diagnosis",)


def test_several_columns_are_changed_at_once(steward):
    steward.open("people.csv")
    wanted = [str(steward.column(name)) for name in ("age", "zip")]
    steward.post("columns", bulk="yes", pick=wanted, **{"bulk-role": "quasi-identifier", "bulk-kind": "nominal"})
    nobody = steward.post("columns", bulk="yes", **{"bulk-role": "other"})

    assert steward.work.draft.roles.quasi_identifiers == ("age", "zip")
    assert steward.work.draft.columns["zip"].kind == "nominal"
    assert nobody.status_code == 422
    assert "No column is ticked" in nobody.text


def test_a_filter_finds_columns_without_naming_them_in_an_address(steward):
    steward.open("people.csv")
    answer = steward.post("columns/find", find="IP")

    assert 'name="role-2"' in answer.text
    assert 'name="role-1"' not in answer.text
    assert str(answer.url).endswith("/columns/find")


def test_a_finding_is_settled_by_one_click_without_showing_its_value(steward, folder):
    rows = [f"{i % 50};{'unknown' if i % 9 == 0 else f'{i % 28 + 1:02}.0{i % 9 + 1}.1970'}" for i in range(200)]
    (folder / "dates.csv").write_text("age;born\n" + "\n".join(rows) + "\n", encoding="utf-8")
    steward.open("dates.csv")
    page = text_of(steward.page("columns"))
    steward.post("columns", remedy="1.0.0")
    field = steward.work.draft.input.fields["born"]
    after = steward.settle("columns")

    assert "take 1 value as missing" in page
    assert "unknown" not in page + after
    assert field.date_format == "%d.%m.%Y"
    assert field.null_values == ("unknown",)
    assert "date or time" in text_of(after)


def test_settings_of_a_column_are_kept_and_removed_with_its_role(ready):
    age = ready.column("age")
    ready.post(f"columns/{age}", role="quasi-identifier", round="0", top="70", missing_codes="-9\n99")
    kept = ready.work.draft.columns["age"]
    ready.post(f"columns/{age}", role="quasi-identifier", round="0", top="70")
    still = ready.work.draft.columns["age"]
    ready.roles(age="other")

    assert (kept.round, kept.top, kept.missing_codes) == (0, 70.0, (-9, 99))
    assert still.missing_codes == (-9, 99)  # they are hidden, so an empty field says nothing
    assert "age" not in ready.work.draft.columns


def test_what_is_unique_now_is_said_before_anything_heavy_runs(ready):
    page = text_of(ready.settle("protection"))

    assert "of the records are unique in the protected columns" in page
    assert "This can be done." in page


@pytest.mark.parametrize(
    ("k", "words"),
    [
        ("61", "only 60 records|60 records"),
        ("1", "“k” cannot be used: it should be at least 2"),
        ("-3", "“k” cannot be used: it should be at least 2"),
        ("x", "“k” cannot be used: it should be a whole number"),
        ("", "Decide|k|unique"),
    ],
)
def test_what_is_impossible_is_said_with_its_reason(ready, k, words):
    answer = ready.post("protection", k=k)
    page = answer.text if answer.status_code == 422 else ready.settle("protection")

    assert re.search(words, text_of(page))
    assert [secret for secret in SECRETS if secret in page] == []


def test_a_promise_is_added_kept_and_taken_back(ready):
    ready.post("protection/model", column="0", model="l-diversity", bound="2", **{"l-diversity.kind": "entropy"})
    (model,) = ready.work.draft.models
    wrong = ready.post("protection/model", column="0", model="t-closeness", bound="7")
    page = text_of(ready.release())
    ready.post("protection/model/remove", number="0")

    assert (model.column, model.l, model.kind) == ("diagnosis", 2, "entropy")
    assert wrong.status_code == 422
    assert "1 promise about confidential columns was kept as well" in page
    assert ready.work.draft.models == ()


def test_every_setting_of_a_model_offers_its_own_values(ready):
    page = ready.page("protection")
    offered = {
        name: re.findall(r"<option>(\w+)</option>", page.partition(f'name="{name}.kind"')[2].partition("</select>")[0])
        for name in ("l-diversity", "beta-likeness")
    }

    assert offered == {"l-diversity": ["distinct", "entropy", "recursive"], "beta-likeness": ["basic", "enhanced"]}


def test_choices_are_tried_shown_as_a_map_and_taken(ready):
    ready.post("try", k="3, 5", method=["auto", "mdav"])
    page = ready.settle("try")
    taken = ready.post("try/take", choice="3")

    assert page.count('name="choice"') == 4
    assert page.count('href="#choice-') == 2 * 4  # the map for wide and for narrow screens
    assert "Recommended: " in page
    assert taken.url.path.endswith("/release")
    assert (ready.work.draft.k, ready.work.draft.method) == (5, "mdav")
    assert "may no longer hold" not in page
    ready.roles(zip="other")
    assert "may no longer hold" in ready.page("try")


def test_a_number_that_cannot_be_is_refused_at_its_field(ready):
    answer = ready.post("protection", k="-3", missing="own-value")

    assert answer.status_code == 422
    assert re.search(r'<input id="k" name="k" value="-3"[^>]* aria-invalid="true"', answer.text)
    assert re.search(r'id="k-wrong">“k” cannot be used: it should be at least 2', answer.text)
    assert '<option value="own-value" selected>' in answer.text  # what was filled in stays
    assert ready.work.draft.k == 5


def test_a_change_of_reading_is_no_refusal_while_the_file_is_read_again(ready, monkeypatch):
    where = f"columns/{ready.column('zip')}"
    monkeypatch.setattr(Inline, "write", lambda self, line: None)
    monkeypatch.setattr(Inline, "poll", lambda self: None)
    answer = ready.post(where, role="quasi-identifier", null_values="none", shown_null_values="yes")

    assert answer.status_code == 200
    assert "could not be done" not in answer.text
    assert "Reading the file in the new way" in answer.text
    assert ready.work.draft.input.fields["zip"].null_values == ("none",)


def test_a_page_says_how_much_it_shows_so_that_it_is_not_loaded_again_for_that(ready, monkeypatch):
    def found(self, line):
        with open(json.loads(line)["file"], "a", encoding="utf-8") as file:
            file.write('{"part": {"sheets": []}}\n' * 2)

    monkeypatch.setattr(Inline, "write", found)
    monkeypatch.setattr(Inline, "poll", lambda self: None)
    ready.post("file/again")

    assert 'data-parts="2"' in ready.page("file")


def test_undo_stays_on_the_settings_of_a_column(ready):
    where = f"columns/{ready.column('age')}"
    ready.post(where, role="quasi-identifier", round="1")
    back = re.search(r'name="back" value="([^"]*)"', ready.page(where))[1]
    answer = ready.post("history/undo", back=back)

    assert answer.url.path.endswith(where)
    assert "age" not in ready.work.draft.columns


def test_two_tabs_on_one_job_the_later_one_is_told(ready):
    at = ready.work.history.at
    first = ready.post("protection", at=at, k="6")
    second = ready.post("protection", at=at, k="7")

    assert first.status_code == 200
    assert second.status_code == 409
    assert f"it showed job {at}" in second.text
    assert "k: 6" in second.text
    assert ready.work.draft.k == 6


def test_undo_redo_and_what_changed(ready):
    ready.post("protection", k="9", seed="1")
    ready.post("history/undo", back="protection")
    back = ready.work.draft.k
    ready.post("history/redo", back="protection")
    at = ready.work.history.at
    page = text_of(ready.post("history/compare", one=str(at - 1), other=str(at)).text)

    assert (back, ready.work.draft.k) == (5, 9)
    assert "k 5 9" in page


def test_a_file_that_changed_on_disk_is_not_released_before_it_is_read_again(ready, folder):
    with (folder / "people.csv").open("a") as file:
        file.write("Zyxwv99;33;77777;f;1200;qqdisease1\n")
    refused = ready.post("release", path="release.csv")
    told = ready.page("protection")
    ready.post("file/again")
    ready.settle("file")

    assert refused.status_code == 422
    assert "has changed on disk" in refused.text
    assert "has changed on disk" in told
    assert "every record hides" in ready.release().lower()


def test_a_release_is_not_written_over_unless_asked(ready, folder):
    ready.release()
    before = (folder / "release.csv").read_bytes()
    second = ready.release()
    third = ready.release(replace="yes")

    assert "already exists" in second
    assert "tick “Replace files that are there already”" in second
    assert "--force" not in second
    assert "Every record hides" in third
    assert (folder / "release.csv").read_bytes() == before


def test_a_form_that_cannot_be_read_is_refused_with_the_reason(ready):
    where = f"{ready.base}/release"
    at = ready.work.history.at
    fields = {"csrf": ready.keys.form_token(where), "at": str(at), "path": "a.csv"}
    parts = "".join(f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{{}}\r\n' for name in fields)
    body = parts.format(*fields.values()) + "--x--\r\n"
    origin = {"origin": ORIGIN}

    def sent(charset, body):
        kind = {"content-type": f"multipart/form-data; boundary=x; charset={charset}"}
        return ready.client.post(where, content=body.encode(), headers=origin | kind)

    # Since Python 3.13, Starlette can read Punycode, in which the field of the token has another name.
    in_punycode = sent("punycode", body)
    odd = sent("undefined", body)
    long = [
        sent("utf-8", body.replace("a.csv", "a" * 1_100_000)),
        ready.client.post(where, data={**fields, "title": "a" * 1_100_000}, headers=origin),
    ]

    assert in_punycode.status_code in (400, 403)
    assert [answer.status_code for answer in (odd, *long)] == [400] * 3
    assert all("longer than 1 MB" in answer.text and "Nothing was changed" in answer.text for answer in long)
    assert ready.work.history.at == at


def test_an_upload_for_which_there_is_no_room_is_refused_with_the_remedy(steward, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("starlette.datastructures.UploadFile.write", full)
    answer = steward.post("/open", upload=("people.csv", b"a\n1\n"))

    assert answer.status_code == 507
    assert "no space left on device" in answer.text
    assert "choose it there" in answer.text


def test_a_release_does_not_leave_the_folder(ready, folder):
    answers = [ready.post("release", path=path) for path in ("../release.csv", "/tmp/release.csv", "release.exe", "")]

    assert {answer.status_code for answer in answers} == {422}
    assert ready.work.draft.output is None


def test_a_job_is_opened_as_it_was_downloaded(ready, folder):
    ready.settle("protection")
    text = ready.get(f"{ready.base}/job.toml").text
    (folder / "again.toml").write_text(text, encoding="utf-8")
    before = ready.work.draft
    ready.open("again.toml")

    assert ready.work.draft == before
    assert tomllib.loads(text)["k"] == 5


def test_a_job_without_k_can_be_downloaded_and_opened_again(steward, folder):
    steward.open("people.csv")
    steward.roles(age="quasi-identifier")
    (folder / "draft.toml").write_text(steward.get(f"{steward.base}/job.toml").text, encoding="utf-8")
    before = steward.work.draft
    steward.open("draft.toml")

    assert steward.work.draft == before
    assert before.k is None


def test_a_job_of_a_newer_version_is_refused_with_a_reason(steward, folder):
    (folder / "newer.toml").write_text('k = 5\nquantum = true\n[roles]\nother = ["a"]\n', encoding="utf-8")
    answer = steward.open("newer.toml")

    assert answer.status_code == 422
    assert "There is no key &#39;quantum&#39;" in answer.text
    assert "newer version of shoal" in answer.text


def test_work_of_a_newer_version_does_not_hide_other_work(ready):
    job = ready.work.history._path(ready.work.history.at)
    job.write_text("quantum = true\n" + job.read_text(encoding="utf-8"), encoding="utf-8")
    first, own = ready.get("/"), ready.get(f"{ready.base}/columns")

    assert first.status_code == 200
    assert "newer version" in first.text
    assert own.status_code == 422


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ('input = {path = "/etc/people.csv"}', "outside the folder"),
        ('output = {path = "../people.csv"}', "outside the folder"),
        ('output = {path = "a.csv", report = "/tmp/report.html"}', "outside the folder"),
        ('output = {path = "a.csv", manifest = "../manifest.json"}', "outside the folder"),
        ('columns = {zip = {hierarchy = "/etc/passwd"}}', "outside the folder"),
        ('input = {path = "a.sas7bdat", catalog = "../a.sas7bcat"}', "outside the folder"),
        ('input = {path = "sqlite:///etc/people.db", table = "a"}', "use the command line"),
        ('output = {path = "postgresql://host/db", to_table = "a"}', "use the command line"),
        ('input = {path = "-"}', "use the command line"),
    ],
)
def test_a_job_that_names_files_elsewhere_is_refused(steward, folder, settings, words):
    (folder / "job.toml").write_text(f"k = 5\n{settings}\n", encoding="utf-8")
    answer = steward.open("job.toml")

    assert answer.status_code == 422
    assert words in text_of(answer.text)
    assert steward.works.listed() == []


BAD_FILES = {
    "empty.csv": b"",
    "latin.csv": "name;city\nA;Münster\n".encode("latin-1"),
    "ragged.csv": b"a,b\n1,2\n3\n",
    "twice.csv": b"a,a\n1,2\n3,4\n",
    "cut.parquet": b"PAR1 nothing",
    "noise.arrow": b"\x00\x01",
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_gives_the_message_of_the_command_line(steward, folder, name):
    (folder / name).write_bytes(BAD_FILES[name])
    steward.open(name)
    page = text_of(steward.page("file"))

    assert "Reading the file was refused" in page
    assert refused(folder / name) in page


def test_an_uploaded_file_is_read_and_its_job_names_it_plainly(steward, folder):
    content = "\n".join(PEOPLE).encode()
    answer = steward.post("/open", upload=("elsewhere.csv", content))
    steward.base = re.match(r"/work/\w+", answer.url.path)[0]
    page = steward.settle("file")

    assert "uploaded copy" in page
    assert tomllib.loads(steward.get(f"{steward.base}/job.toml").text)["input"]["path"] == "elsewhere.csv"
    assert not (folder / "elsewhere.csv").exists()


def test_another_file_is_used_with_the_same_job(ready, folder):
    (folder / "later.csv").write_text("\n".join(PEOPLE[:50]) + "\n", encoding="utf-8")
    ready.post("file/replace", path="later.csv")
    page = text_of(ready.settle("file"))

    assert "Records 49" in page
    assert ready.work.draft.k == 5


def test_names_of_columns_are_data_and_never_html(steward, folder):
    evil = '<script>alert(1)</script>"><img src=x onerror=alert(1)>'
    with (folder / "evil.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([evil, "{{ 7 * 7 }}", "‮gnp"])
        writer.writerows([[i, i % 7, i % 3] for i in range(40)])
    steward.open("evil.csv")
    steward.post("columns", **{f"role-{i}": "quasi-identifier" for i in range(3)})
    steward.post("protection", k="4")
    steward.release("evil.release.csv")
    pages = "".join(
        steward.settle(step) for step in ("columns", "columns/0", "protection", "release", "closer", "history")
    )

    assert steward.work.runs.latest("release").outcome == "done"
    assert "<script>alert" not in pages
    assert "<img src=x" not in pages
    assert ">49<" not in pages
    assert "‮" not in pages


def test_another_file_is_counted(ready, folder):
    ready.release()
    ready.post("closer/audit", path="release.csv", k="5")
    good = text_of(ready.settle("closer"))
    ready.post("closer/audit", path="people.csv", k="5")
    bad = text_of(ready.settle("closer"))

    assert "release.csv : Every record hides among at least 5" in good
    assert "people.csv : 60 of 60 records hide among fewer than 5" in bad


def test_two_releases_stand_side_by_side(ready):
    ready.release()
    ready.post("protection", k="10", seed="1")
    ready.release("second.csv")
    one, other = ready.work.runs.all_of("release")
    page = text_of(ready.post("closer/compare", one=str(one.number), other=str(other.number)).text)

    assert "Smallest group 5 10" in page
    assert "Loss of income" in page


def test_downloads_are_the_files_that_were_written(ready, folder):
    ready.release()
    run = ready.work.runs.latest("release")
    got = [ready.get(f"{ready.base}/release/{run.number}/files/{i}") for i in range(len(run.result["files"]))]
    report = ready.get(f"{ready.base}/release/{run.number}/report")

    assert [answer.content for answer in got] == [(folder / file["path"]).read_bytes() for file in run.result["files"]]
    assert {answer.headers["content-disposition"].split(";")[0] for answer in got} == {"attachment"}
    assert report.headers["content-security-policy"].startswith("sandbox allow-scripts;")
    assert ready.get(f"{ready.base}/release/{run.number}/files/99").status_code == 422


def test_a_full_disk_is_a_message_and_the_job_stays(ready, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    at = ready.work.history.at
    monkeypatch.setattr("pathlib.Path.write_text", full)
    answer = ready.post("protection", k="7")
    monkeypatch.undo()

    assert answer.status_code == 422
    assert "the disk is full" in answer.text
    assert ready.work.history.at == at


def test_a_server_that_ended_in_the_middle_shows_where_it_stood(ready, folder, tmp_path):
    ready.work.runs._path(99).write_text(
        '{"verb": "release", "key": "", "job": 1, "options": {}}\n{"stage": "records are grouped", "share": 0.4}\n{"st'
    )
    base = ready.base
    ready.close()
    again = Steward(folder, tmp_path / "state")
    again.base = base
    page = text_of(again.page("release"))
    draft = again.work.draft
    again.close()

    assert "was interrupted when the app ended, at 40.0%, when records were grouped" in page
    assert draft.k == 5


def test_a_piece_of_work_is_open_in_one_app_at_a_time(ready, folder, tmp_path):
    other = Steward(folder, tmp_path / "state")
    other.base = ready.base
    answer = other.get(f"{ready.base}/file")
    other.close()

    assert answer.status_code == 422
    assert "open in another shoal app" in answer.text


def test_a_table_of_500_columns_fits_into_one_form(steward, folder):
    table = pa.table({f"c{i}": [j % (i + 2) for j in range(20)] for i in range(500)})
    pa.csv.write_csv(table, folder / "wide.csv")
    steward.open("wide.csv")
    fields = {f"role-{i}": "other" for i in range(500)} | {f"kind-{i}": "" for i in range(500)}
    steward.post("columns", **fields)

    assert len(steward.work.draft.roles.other) == 500


def test_every_page_of_the_steps_exists(ready):
    assert {ready.get(f"{ready.base}/{step}").status_code for step in ("file", "columns", "try", "closer")} == {200}
    assert ready.get("/work/0000000000000000/file").status_code == 422
    assert ready.get(f"{ready.base}/nothing").status_code == 404
    assert set(ROLES.values()) <= {"identifier", "quasi-identifier", "confidential"}


def test_a_piece_of_work_is_removed_only_by_one_who_is_sure(ready, folder):
    ready.release()
    path = ready.work.history._path(1)
    unsure = ready.post("history/remove")
    sure = ready.post("history/remove", sure="yes")

    assert unsure.status_code == 422
    assert sure.url.path == "/"
    assert not path.exists()
    assert (folder / "release.csv").exists()


def test_a_question_that_comes_up_in_the_release_is_answered_on_its_page(steward, folder):
    lines = [f"{20 + i},{'common' if i % 5 > 1 else f'rare{i}'}" for i in range(40)]
    (folder / "jobs.csv").write_text("age,job\n" + "\n".join(lines) + "\n", encoding="utf-8")
    steward.open("jobs.csv")
    steward.roles(age="quasi-identifier", job="quasi-identifier")
    steward.post("protection", k="2", seed="1", method="mdav")
    refused = steward.release()
    steward.post("release/settle", remedy="0.0")
    made = steward.release()

    assert "would publish a text that only one record has" in text_of(refused)
    assert "rare" not in refused
    assert steward.work.draft.columns["job"].aggregate == "withhold"
    assert "Every record hides" in made


def test_a_question_is_also_answered_by_accepting_it(steward, folder):
    (folder / "codes.csv").write_text("age,walls\n" + "".join(f"{20 + i},{i % 2 + 1}\n" for i in range(40)))
    steward.open("codes.csv")
    steward.roles(age="quasi-identifier", walls="quasi-identifier")
    number = len(steward.work.inspection(steward.work.draft).result["columns"][1]["findings"][0]["remedies"])
    steward.post("columns", remedy=f"1.0.{number}")

    assert steward.work.draft.accept == ("walls=codes",)
    assert "finding asked" not in steward.page("columns")


def test_ranges_are_published_and_shown_with_both_ends(ready):
    ready.post("protection", k="5", seed="1", truthful="yes", intervals="columns")
    page = text_of(ready.release())
    ready.post("values", show="yes", back="closer")
    ready.post("closer/records", which="lost")

    assert "Every record hides among at least 5" in page
    assert re.search(r"→ \d+ to \d+", text_of(ready.settle("closer")))


def test_the_first_page_survives_what_a_killed_app_or_another_program_left(ready):
    folder = ready.works._folder
    (folder / ("0" * 16)).mkdir()  # killed before the first job was stored
    (folder / ".DS_Store").write_bytes(b"")

    assert "people.csv" in ready.get("/").text


def test_a_name_that_is_not_utf_8_does_not_break_the_first_page(ready, folder):
    try:
        (folder / os.fsdecode(b"m\xfcller.csv")).write_text("a\n1\n")
    except OSError:
        pytest.skip("this system has no such names")
    answer = ready.get("/")

    assert answer.status_code == 200
    assert "people.csv" in answer.text
    assert "1 entry is not listed: its name is not in UTF-8" in answer.text


def test_progress_of_what_does_not_exist_is_refused(ready):
    assert ready.get(f"{ready.base}/runs/999/events").status_code == 422
    assert ready.get("/work/none/runs/1/events").status_code == 422


def test_a_job_for_another_engine_is_refused_before_anything_is_written(ready, folder):
    job = ready.get(f"{ready.base}/job.toml").text
    (folder / "large.toml").write_text(f'memory = "1GB"\n{job}')
    answer = ready.post("/open", path="large.toml")

    assert answer.status_code == 422
    assert "engine 'disk'" in text_of(answer.text)


def test_a_name_that_is_too_long_is_refused(ready):
    assert ready.post("/open", path=f"{'a' * 5000}.csv").status_code == 422
    assert ready.post("file/replace", path=f"{'a' * 5000}.csv").status_code == 422
    assert "its name is too long" in text_of(ready.release(f"{'a' * 300}.csv"))


def test_a_release_is_offered_only_in_formats_that_are_written(ready):
    assert ready.post("release", path="release.xlsm").status_code == 422
    assert ".xlsm" not in ready.page("release")


@pytest.mark.parametrize(("read", "written"), [("a.sas7bdat", "a.release.xpt"), ("a.csv.gz", "a.release.csv")])
def test_the_usual_name_of_a_release_can_be_written(steward, folder, read, written):
    (folder / read).write_bytes(b"")
    steward.open(read)

    assert f'value="{written}"' in steward.page("release")


@pytest.mark.parametrize(
    "name", ["csv", "public.html", "report.html", "job.toml", "csv.public.json", "csv.internal.json"]
)
def test_no_file_of_a_release_is_written_through_a_link_out_of_the_folder(ready, folder, name):
    outside = folder.parent / "outside"
    (folder / f"release.{name}").symlink_to(outside)
    answer = ready.post("release", path="release.csv", replace="yes")

    assert answer.status_code == 422
    assert "outside the folder" in text_of(answer.text)
    assert not outside.exists()
    assert ready.work.runs.latest("release") is None
