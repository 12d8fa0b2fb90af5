"""The keyboard of a person who has no mouse: Tab, arrows, Enter and Space, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playwright.sync_api import expect

if TYPE_CHECKING:
    from playwright.sync_api import Locator

#: How far an element is from the focus, in steps of Tab; backwards if it is negative. The browser
#: is asked where it is, not told to go there.
_DISTANCE: Final = """
(wanted) => {
  const selector = "a[href], button, input, select, textarea, summary, [tabindex='0']"
  const box = wanted.closest("dialog") ?? document
  const isSeen = (one) => one.checkVisibility({ visibilityProperty: true })
  const isStep = (one) => !one.disabled && one.tabIndex >= 0 && isSeen(one)
  const all = [...box.querySelectorAll(selector)].filter(isStep)
  const to = all.indexOf(wanted)
  if (to < 0) return null
  const from = all.indexOf(document.activeElement)
  return to - from
}
"""
_HAS_FOCUS: Final = "(wanted) => wanted === document.activeElement"
#: Steps beside those that were counted: parts of a field for a date are steps of their own.
_MORE: Final = 40


def reach(wanted: Locator) -> None:
    """Go to an element."""
    expect(wanted).to_be_visible()
    if wanted.get_attribute("role") == "menuitem":
        _step(wanted, "ArrowDown", 0)
        return
    distance = wanted.evaluate(_DISTANCE)
    assert distance is not None, f"no key leads to {wanted}"
    _step(wanted, "Tab" if distance > 0 else "Shift+Tab", abs(distance))


def _step(wanted: Locator, key: str, count: int) -> None:
    for _ in range(count):
        wanted.page.keyboard.press(key)
    for _ in range(_MORE):
        if wanted.evaluate(_HAS_FOCUS):
            return
        wanted.page.keyboard.press(key)
    focused = wanted.page.evaluate("document.activeElement.outerHTML.slice(0, 200)")
    raise AssertionError(f"{key} does not lead to {wanted}, but to {focused}")


def press(wanted: Locator, key: str = "Enter") -> None:
    """Use a button, a link or a box."""
    reach(wanted)
    wanted.page.keyboard.press(key)


def write(wanted: Locator, text: str) -> None:
    """Replace what is in a field."""
    reach(wanted)
    keyboard = wanted.page.keyboard
    if wanted.get_attribute("type") == "date":
        # Its parts are steps of their own, which look like the whole: begin with the first one.
        while wanted.evaluate(_HAS_FOCUS):
            keyboard.press("Shift+Tab")
        keyboard.press("Tab")
        year, month, day = text.split("-")
        keyboard.type(f"{month}{day}{year}")
        return
    keyboard.press("Control+A")
    keyboard.press("Backspace")
    keyboard.type(text)


def pick(wanted: Locator, value: str | None = None, *, label: str | None = None) -> None:
    """Choose from a list by its value, or by its words."""
    reach(wanted)
    options = wanted.locator("option")
    if label is None:
        index = options.evaluate_all("all => all.map(one => one.value)").index(value)
    else:
        index = options.all_inner_texts().index(label)
    wanted.page.keyboard.press("Home")
    for _ in range(index):
        wanted.page.keyboard.press("ArrowDown")
