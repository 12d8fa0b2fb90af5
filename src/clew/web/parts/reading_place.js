/** Where a person reads: it stays where it is, whatever is added, removed or grows around it. */

/** @import { ConversationStore } from "../stores/conversation.js" */

/** Pixels from the end within which a person counts as being there. */
const NEAR = 80
/** Screens from either end of what is loaded at which more is loaded. */
const EARLY = 1.5
/** Elements that are remembered: some of them may go. */
const MARKS = 8

export class ReadingPlace {
  isAtEnd = true
  /** @type {HTMLElement | null} */
  #area = null
  /** @type {Array<{ element: HTMLElement, top: number }>} what is read, and where it is */
  #marks = []
  #top = 0
  #lastTop = 0

  /** @param {ConversationStore} store */
  constructor(store) {
    this.store = store
  }

  /**
   * Remember how far it is scrolled, before elements change.
   *
   * @param {HTMLElement | null} area
   */
  note(area) {
    this.#area = area
    if (area) this.#top = area.scrollTop
  }

  /** Go back to what was read, after elements have changed. */
  restore() {
    const area = this.#area
    if (!area) return
    if (this.isAtEnd) return this.#toEnd()
    this.#shift(this.#top)
  }

  /** @param {number} seq 0 is the end */
  goTo(seq) {
    const area = this.#area
    if (!area) return
    const found = /** @type {HTMLElement | null} */ (seq ? findEntry(area, seq) : null)
    this.#setAtEnd(!found)
    if (!found) return this.#toEnd()
    area.scrollTop = found.offsetTop - Math.max(0, area.clientHeight - found.offsetHeight) / 3
    found.focus({ preventScroll: true })
    this.#mark()
  }

  /** Follow what grows, until the returned function is called. */
  watch() {
    const area = this.#area ?? /** @type {HTMLElement | null} */ (document.querySelector(".transcript"))
    const content = area?.firstElementChild
    this.#area = area
    if (!area || !content) return
    const watcher = new ResizeObserver(() => {
      if (this.isAtEnd) this.#toEnd()
      else this.#shift(area.scrollTop)
      this.#fill()
    })
    watcher.observe(content)
    watcher.observe(area)
    return () => watcher.disconnect()
  }

  onScroll() {
    const area = this.#area
    if (!area) return
    // What grows below moves the end away from a person, who did not move: only going up leaves it.
    const isNear = area.scrollHeight - area.scrollTop - area.clientHeight < NEAR
    if (isNear && this.store.range.hasEnd.value) this.#setAtEnd(true)
    else if (area.scrollTop < this.#lastTop) this.#setAtEnd(false)
    this.#lastTop = area.scrollTop
    this.#mark()
    this.#fill()
  }

  /** Load more where little is left. */
  #fill() {
    const area = this.#area
    if (!area || this.store.isLoading.value) return
    const early = EARLY * area.clientHeight
    if (area.scrollTop < early && this.store.range.first.value > 1) this.store.loadOlder()
    else if (area.scrollHeight - area.scrollTop - area.clientHeight < early) this.store.loadNewer()
  }

  #toEnd() {
    const area = this.#area
    if (!area) return
    area.scrollTop = area.scrollHeight
    this.#lastTop = area.scrollTop
  }

  /** @param {boolean} isAtEnd */
  #setAtEnd(isAtEnd) {
    this.isAtEnd = isAtEnd
    this.store.range.isFollowed = isAtEnd
  }

  /** Remember what is read, and where it is. */
  #mark() {
    const area = this.#area
    const content = area?.firstElementChild
    if (!area || !content) return
    const elements = /** @type {HTMLElement[]} */ ([...content.children])
    const n = findFirst(elements, (one) => one.offsetTop + one.offsetHeight > area.scrollTop)
    this.#marks = elements
      .slice(n, n + MARKS)
      .filter((element) => element.dataset.seq)
      .map((element) => ({ element, top: element.offsetTop }))
  }

  /**
   * Scroll by as much as what is read was moved.
   *
   * @param {number} from how far it was scrolled
   */
  #shift(from) {
    const area = this.#area
    const mark = this.#marks.find(({ element }) => element.isConnected)
    if (!area || !mark) return
    const moved = mark.element.offsetTop - mark.top
    if (moved || area.scrollTop !== from) area.scrollTop = from + moved
    this.#lastTop = area.scrollTop
    this.#mark()
  }
}

/**
 * The first element that holds, where all after it do.
 *
 * @param {HTMLElement[]} elements
 * @param {(element: HTMLElement) => boolean} holds
 */
function findFirst(elements, holds) {
  let low = 0
  let high = elements.length
  while (low < high) {
    const middle = (low + high) >> 1
    const element = elements[middle]
    if (element && holds(element)) high = middle
    else low = middle + 1
  }
  return low
}

/**
 * The element of an entry, or of the next one that has an element.
 *
 * @param {HTMLElement} area
 * @param {number} seq
 */
function findEntry(area, seq) {
  const entries = /** @type {HTMLElement[]} */ ([...area.querySelectorAll(".entry")])
  return entries.find((one) => Number(one.dataset.seq) >= seq) ?? entries.at(-1) ?? null
}
