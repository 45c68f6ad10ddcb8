"""Two gateways on one host, and one browser, which tells hosts apart and not ports."""

from playwright.sync_api import Browser, expect

from tests.browser.scene import Scene, sign_in


def test_who_signs_in_or_out_at_one_gateway_stays_at_the_other(
    chromium: Browser, scene: Scene
) -> None:
    scene.globex.carnet("people", "add", "gloria", "--role", "viewer")
    hers = scene.globex.new_token("gloria-laptop", "--person", "gloria")
    context = chromium.new_context()
    page = context.new_page()
    for at, token in ((scene.acme, scene.token), (scene.globex, hers)):
        page.goto(f"{at.url}/console/")
        sign_in(page, token)
    for at, name in ((scene.acme, "alice"), (scene.globex, "gloria"), (scene.acme, "alice")):
        page.goto(f"{at.url}/console/")
        expect(page.locator(".who strong")).to_have_text(name)
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.goto(f"{scene.globex.url}/console/")
    expect(page.locator(".who strong")).to_have_text("gloria")
    kept = {each["name"] for each in context.cookies()}
    assert kept == {f"carnet_session_{scene.globex.port}"}
    context.close()
