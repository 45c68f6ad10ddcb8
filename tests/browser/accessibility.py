"""What everybody needs of a page, whatever it is looked at with: names, contrast, an order."""

from itertools import pairwise

from playwright.sync_api import Page

LEAST_CONTRAST = 4.5  # WCAG 2.2, 1.4.3, for text of the usual size

# Of each element with a text of its own: its colour, and the first back that is not transparent.
_COLOURS = """
() => {
  const paint = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgba = (text) => {
    paint.clearRect(0, 0, 1, 1); paint.fillStyle = text; paint.fillRect(0, 0, 1, 1);
    return [...paint.getImageData(0, 0, 1, 1).data];
  };
  const back = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const found = rgba(getComputedStyle(at).backgroundColor);
      if (found[3] > 250) return found;
    }
    return [255, 255, 255, 255];
  };
  const shown = [...document.querySelectorAll("body *:not(script):not(svg *)")].filter(
    (each) => each.checkVisibility({visibilityProperty: true})
      && [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim())
  );
  return shown.map((each) => [
    each.textContent.trim().slice(0, 40), rgba(getComputedStyle(each).color), back(each),
  ]);
}
"""
_NAMELESS = """
() => [...document.querySelectorAll("a, button, input, select, textarea, summary, [role=img]")]
  .filter((each) => each.checkVisibility())
  .filter((each) => !(each.ariaLabel || each.textContent.trim() || each.title
    || (each.labels && each.labels.length)))
  .map((each) => each.outerHTML.slice(0, 120))
"""
MOST_STEPS = 40
_PLACE = "() => [...document.querySelectorAll('*')].indexOf(document.activeElement)"
_WIDER = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


def contrast(one: list[int], other: list[int]) -> float:
    """How far two colours differ in brightness, as WCAG counts it."""
    brighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (brighter + 0.05) / (darker + 0.05)


def _luminance(colour: list[int]) -> float:
    parts = [value / 255 for value in colour[:3]]
    red, green, blue = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def check(page: Page) -> None:
    """Fail where a page cannot be read, named, or stepped through."""
    colours: list[tuple[str, list[int], list[int]]] = page.evaluate(_COLOURS)
    assert colours
    faint = [
        (text, front, back)
        for text, front, back in colours
        if contrast(front, back) < LEAST_CONTRAST
    ]
    assert faint == []
    assert page.evaluate(_NAMELESS) == []
    assert page.evaluate(_WIDER) <= 0
    assert page.get_by_role("main").count() == 1
    menu = page.get_by_role("button", name="Menu")  # where there is little room
    assert page.get_by_role("navigation").count() + menu.count() == 1
    assert page.locator("h1").count() == 1
    assert page.evaluate("document.documentElement.lang") == "en"
    headings: list[int] = page.evaluate(
        "() => [...document.querySelectorAll('h1,h2,h3,h4')].map((each) => +each.tagName[1])"
    )
    assert [pair for pair in pairwise(headings) if pair[1] > pair[0] + 1] == []
    _check_order(page)


def _check_order(page: Page) -> None:
    """By the tabulator one comes to the skip link first, then down the page, to its end."""
    page.evaluate("document.activeElement.blur()")
    page.evaluate("window.scrollTo(0, 0)")
    places: list[int] = []
    for _ in range(MOST_STEPS):
        page.keyboard.press("Tab")
        place: int = page.evaluate(_PLACE)
        if places and place <= places[0]:  # it begins again
            break
        places.append(place)
    assert page.locator(".skip").count() == 1
    assert places == sorted(places)
    assert len(places) > 2
