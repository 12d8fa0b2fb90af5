/** What was said, in order; it stays at the end while a person is there. */

import { isRewound } from "../entries.js"
import { html, useEffect, useLayoutEffect, useRef, useState } from "../lib.js"
import { undoCompaction } from "../stores/compaction.js"
import { CompactionMark } from "./compaction.js"
import { Icon } from "./icon.js"
import { MarkdownText } from "./markdown_text.js"
import { Message, Thinking } from "./message.js"
import { ReadingPlace } from "./reading_place.js"

/** @import { Block } from "../entries.js" */
/** @import { ConversationStore } from "../stores/conversation.js" */
/** @import { Actions } from "./message.js" */

/**
 * Blocks that were rewound in a row belong together.
 *
 * @param {Block[]} blocks
 * @param {(block: Block) => boolean} isTaken
 * @returns {Array<{ isTaken: boolean, blocks: Block[] }>}
 */
export function groupBlocks(blocks, isTaken) {
  /** @type {Array<{ isTaken: boolean, blocks: Block[] }>} */
  const groups = []
  for (const block of blocks) {
    const last = groups.at(-1)
    if (last?.isTaken === isTaken(block)) last.blocks.push(block)
    else groups.push({ isTaken: isTaken(block), blocks: [block] })
  }
  return groups
}

/** @param {{ blocks: Block[], actions: Actions }} props */
function Rewound({ blocks, actions }) {
  const [isOpen, setOpen] = useState(false)
  const count = blocks.filter((block) => block.kind === "user").length
  const words = count === 1 ? "1 message was rewound" : `${count || blocks.length} messages were rewound`
  return html`<div class="rewound" data-seq=${blocks[0]?.seq}>
    <button type="button" class="quiet-button" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>
      ${words}<span class="chevron"><${Icon} name="chevron" size="14" /></span>
    </button>
    ${isOpen && blocks.map((block) => html`<${Message} key=${block.key} block=${block} actions=${actions} isLast=${false} />`)}
  </div>`
}

/** @param {{ store: ConversationStore, actions: Actions }} props */
function Entries({ store, actions }) {
  // Elements of blocks that did not change: nothing of them is made or compared again.
  const made = useRef(/** @type {WeakMap<Block, { isLast: boolean, element: any }>} */ (new WeakMap()))
  const blocks = store.range.blocks.value
  const spans = store.state.value?.taken_back ?? []
  const isAtRest = !store.isRunning.value && store.range.hasEnd.value
  const lastAnswer = isAtRest ? blocks.findLast((block) => block.kind === "answer" || block.kind === "user") : null
  /** @param {Block} block */
  const show = (block) => {
    const isLast = block === lastAnswer
    const known = made.current.get(block)
    if (known?.isLast === isLast) return known.element
    const element = html`<div class="entry" key=${block.key} data-seq=${block.seq} tabindex="-1">
      <${Message} block=${block} actions=${actions} isLast=${isLast} />
    </div>`
    made.current.set(block, { isLast, element })
    return element
  }
  const groups = groupBlocks(blocks, (block) => isRewound(block.seq, spans))
  const { first, last } = store.range
  const marks = store.compactions.value.filter((one) => first.value <= one.seq && one.seq <= last.value)
  /** @param {number} seq */
  const showMarks = (seq) =>
    takeWhile(marks, (one) => one.seq < seq).map(
      (one) => html`<${CompactionMark} key=${one.session} compaction=${one} undo=${() => undoCompaction(store)} />`,
    )
  const shown = groups.flatMap((group) =>
    group.isTaken
      ? [
          ...showMarks(group.blocks[0]?.seq ?? 0),
          html`<${Rewound} key=${`r${group.blocks[0]?.key}`} blocks=${group.blocks} actions=${actions} />`,
        ]
      : group.blocks.flatMap((block) => [...showMarks(block.seq), show(block)]),
  )
  return [...shown, ...showMarks(Number.MAX_SAFE_INTEGER)]
}

/**
 * Take those from the beginning that hold.
 *
 * @template T
 * @param {T[]} items
 * @param {(item: T) => boolean} holds
 */
function takeWhile(items, holds) {
  const end = items.findIndex((item) => !holds(item))
  return items.splice(0, end < 0 ? items.length : end)
}

/** @param {{ store: ConversationStore }} props */
function Live({ store }) {
  const live = store.live.value
  return html`${live.thinking && html`<${Thinking} source=${live.thinking} isLive=${!live.text} />`}
  ${live.text && html`<article class="message answer live"><${MarkdownText} source=${live.text} isLive=${true} /></article>`}`
}

/** @param {{ store: ConversationStore, actions: Actions, sent: number, children?: any }} props */
export function Transcript({ store, actions, sent, children }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null))
  const [place] = useState(() => new ReadingPlace(store))
  const [isAway, setAway] = useState(false)
  const { first, hasEnd, blocks } = store.range
  place.note(box.current)
  useLayoutEffect(() => place.restore(), [blocks.value])
  useLayoutEffect(() => {
    // A person who sends wants to see the end.
    if (sent) store.show()
  }, [sent])
  useLayoutEffect(() => place.goTo(store.target.value.seq), [store.target.value])
  useEffect(() => place.watch(), [])
  const onScroll = () => {
    place.onScroll()
    setAway(!place.isAtEnd)
  }
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    if (event.target !== box.current) return
    const isHome = event.key === "Home"
    if (!isHome && event.key !== "End") return
    if (isHome ? first.value <= 1 : hasEnd.value) return
    event.preventDefault()
    store.show(isHome ? 1 : undefined)
  }
  return html`<div class="transcript-frame">
    <div
      class="transcript"
      ref=${box}
      onScroll=${onScroll}
      onKeyDown=${onKey}
      tabindex="0"
      role="log"
      aria-live="off"
      aria-label="Conversation"
    >
      <div class="column">
        ${first.value > 1 &&
        html`<button type="button" class="quiet-button more" onClick=${() => store.loadOlder()}>Show earlier messages</button>`}
        <${Entries} store=${store} actions=${actions} />
        ${hasEnd.value
          ? html`<${Live} store=${store} />${children}`
          : html`<button type="button" class="quiet-button more" onClick=${() => store.loadNewer()}>Show later messages</button>`}
      </div>
    </div>
    ${(isAway || !hasEnd.value) &&
    html`<button
      type="button"
      class="to-end"
      aria-label="To the end"
      title="To the end"
      onClick=${() => store.show()}
    >
      <${Icon} name="down" />
    </button>`}
  </div>`
}
