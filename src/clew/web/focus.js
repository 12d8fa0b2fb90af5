/**
 * Where the keyboard goes on when what had the focus is gone: a row that was deleted, a question that
 * was answered, a message of the page with its button. Without it, Tab begins at the top again.
 */

const FOCUSABLE = "a[href], button:not(:disabled), input:not(:disabled, [type=hidden]), select, textarea, [tabindex='0']"
/** What takes over where nothing near can: the field for a message, or the page. */
const HOME = "#composer, .operate-body, main a[href]"

/** @typedef {{ element: Element, index: number }} Step an element, and which child of it led to the focus */

/** @type {HTMLElement | null} */
let last = null
/** @type {Step[]} */
let path = []
let isByKeyboard = false
/** Whether what has the focus takes no keys for now, such as a button that waits for an answer. */
let isOff = false

/**
 * Focus an element as soon as it is shown; it is a ``ref``.
 *
 * @param {HTMLElement | null} element
 */
export const focusAtOnce = (element) => element?.focus()

/** @param {FocusEvent} event */
function note(event) {
  last = /** @type {HTMLElement} */ (event.target)
  isOff = false
  path = []
  for (let child = /** @type {Element} */ (last); child.parentElement; child = child.parentElement) {
    path.push({ element: child.parentElement, index: [...child.parentElement.children].indexOf(child) })
  }
}

/** @param {Element | undefined | null} element */
function enter(element) {
  const found = element?.matches(FOCUSABLE) ? element : element?.querySelector(FOCUSABLE)
  if (!(found instanceof HTMLElement)) return false
  found.focus()
  return document.activeElement === found
}

/** Focus what stands where the lost element stood, or what is before it. */
function recover() {
  const near = path.find(({ element }) => element.isConnected)
  last = null
  if (!near) return
  const home = document.querySelector(HOME)
  // In a conversation, and after a message of the page, a person goes on writing.
  if (near.element.closest(".toasts, .transcript, .side-work, .page:not(.operate)")) {
    if (home instanceof HTMLElement) home.focus()
    return
  }
  for (const { element, index } of path.slice(path.indexOf(near))) {
    if (element === document.body || element.matches(".frame, .page")) break
    const children = [...element.children]
    const order = [...children.slice(index), ...children.slice(0, index).reverse()]
    if (order.some(enter)) return
  }
  if (home instanceof HTMLElement) home.focus()
}

function look() {
  // Whoever uses a finger wants no keyboard on the screen.
  if (!last || !isByKeyboard) return
  const isLost = document.activeElement === document.body
  if (last.matches(":disabled") && last.isConnected) isOff = true
  else if (!last.isConnected && isLost) recover()
  else if (isOff && isLost) last.focus()
}

/** Watch over the focus from now on. */
export function keepFocus() {
  document.addEventListener("focusin", note)
  addEventListener("keydown", () => (isByKeyboard = true), true)
  addEventListener("pointerdown", () => (isByKeyboard = false), true)
  new MutationObserver(look).observe(document.body, {
    childList: true,
    subtree: true,
    attributeFilter: ["disabled"],
  })
}
