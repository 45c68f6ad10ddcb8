"""The console in a frame of another page, in a real browser: it is not shown there."""

from playwright.sync_api import Browser

from tests.browser.hostile.scene import Hostile

_FRAMED = """(url) => new Promise((resolve) => {
  const frame = document.createElement("iframe");
  frame.addEventListener("load", resolve);
  frame.src = url;
  document.body.append(frame);
})"""


def test_no_page_stands_in_a_frame_of_another(chromium: Browser, hostile: Hostile) -> None:
    context = chromium.new_context()
    name, _, value = hostile.browser.cookie.partition("=")
    context.add_cookies([{"name": name, "value": value, "url": hostile.acme.url}])
    page = context.new_page()
    page.goto(f"{hostile.globex.url}/healthz")  # of the same site, so that the cookie is sent
    for path in ("/healthz", "/console/", "/console/keys", "/sign-in?code=x"):
        page.evaluate(_FRAMED, hostile.acme.url + path)
    first, *others = [frame.url for frame in page.frames if frame != page.main_frame]
    assert first == f"{hostile.acme.url}/healthz"
    assert {*others} == {"chrome-error://chromewebdata/"}
    assert len(others) == 3
    context.close()
