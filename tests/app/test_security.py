import pytest
from steward import HOST, ORIGIN, PORT, Steward

from shoal.app.security import Keys
from shoal.app.server import listening


@pytest.fixture(scope="module")
def steward(tmp_path_factory):
    root = tmp_path_factory.mktemp("data")
    found = Steward(root, tmp_path_factory.mktemp("state"))
    yield found
    found.close()


def ask(steward, path="/", cookie=True, method="GET", **headers):
    jar = dict(steward.client.cookies) if cookie else {}
    given = {"host": HOST, "cookie": "; ".join(f"{name}={value}" for name, value in jar.items()), **headers}
    client = steward.client
    request = client.build_request(method, path, headers=given)
    return client.send(request, follow_redirects=False)


def test_it_listens_on_this_machine_alone():
    with listening() as door:
        host, port = door.getsockname()

    assert host == "127.0.0.1"
    assert port > 1023


def test_the_token_is_traded_once_for_a_cookie_that_scripts_cannot_read(tmp_path):
    root = tmp_path / "data"
    root.mkdir()
    steward = Steward(root, tmp_path / "state")
    steward.client.cookies.clear()
    keys = steward.keys
    used = ask(steward, "/?token=whatever", cookie=False)
    keys.token = "fresh"
    first = ask(steward, "/?token=fresh", cookie=False)
    second = ask(steward, "/?token=fresh", cookie=False)
    steward.close()

    assert (used.status_code, first.status_code, second.status_code) == (403, 303, 403)
    cookie = first.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert keys.cookie.lower() in cookie
    assert "token" not in first.headers["location"]


def test_without_the_cookie_nothing_is_shown(steward):
    answers = [ask(steward, path, cookie=False) for path in ("/", "/static/app.css", "/work/abc/file")]

    assert {answer.status_code for answer in answers} == {403}


@pytest.mark.parametrize("host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", f"127.0.0.1:{PORT + 1}", ""])
def test_another_host_is_refused(steward, host):
    assert ask(steward, host=host).status_code == 421


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": f"http://127.0.0.1:{PORT + 1}"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_another_site_is_refused(steward, headers):
    assert ask(steward, **headers).status_code == 403


def test_a_form_without_an_origin_is_refused(steward):
    assert ask(steward, "/open", method="POST").status_code == 403


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_other_methods_are_refused(steward, method):
    assert ask(steward, method=method).status_code == 405


def test_a_form_needs_the_token_of_its_own_address(steward):
    wrong = steward.client.post("/open", data={"csrf": steward.keys.form_token("/other")}, headers={"origin": ORIGIN})
    none = steward.client.post("/open", data={}, headers={"origin": ORIGIN})

    assert (wrong.status_code, none.status_code) == (403, 403)


def test_every_answer_forbids_storing_framing_and_inline_scripts(steward):
    for path in ("/", "/static/app.js", "/nothing", "/work/abc/file"):
        headers = steward.get(path).headers
        policy = headers["content-security-policy"]

        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
        assert "unsafe" not in policy
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy


def test_pages_hold_no_inline_script_style_or_address_of_elsewhere(steward):
    text = steward.get("/").text

    assert "style=" not in text
    assert "<style" not in text
    assert "onclick" not in text
    assert "https://" not in text
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")


def test_secrets_are_not_shown_by_mistake():
    keys = Keys()

    assert keys.token not in repr(keys)
    assert keys.cookie not in repr(keys)
