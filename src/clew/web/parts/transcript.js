/** What was said, in order; it stays at the end while a person is there. */

import { isRewound } from "../entries.js"
import { html, useEffect, useLayoutEffect, useRef, useState } from "../lib.js"
import { Icon } from "./icon.js"
import { MarkdownText } from "./markdown_text.js"
import { Message, Thinking } from "./message.js"

/** @import { Block } from "../entries.js" */
/** @import { ConversationStore } from "../stores/conversation.js" */
/** @import { Actions } from "./message.js" */

/** Pixels from the end within which a person counts as being there. */
const NEAR = 80
/** Pixels from the beginning at which older entries are loaded. */
const EARLY = 600

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
  return html`<div class="rewound">
    <button type="button" class="quiet-button" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>
      ${words}<span class="chevron"><${Icon} name="chevron" size="14" /></span>
    </button>
    ${isOpen && blocks.map((block) => html`<${Message} key=${block.key} block=${block} actions=${actions} isLast=${false} />`)}
  </div>`
}

/** @param {{ store: ConversationStore, actions: Actions, sent: number, children?: any }} props */
export function Transcript({ store, actions, sent, children }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null))
  const isAtEnd = useRef(true)
  const height = useRef(0)
  const top = useRef(0)
  const [isAway, setAway] = useState(false)
  const blocks = store.blocks.value
  const live = store.live.value
  const spans = store.state.value?.taken_back ?? []
  const first = store.first.value
  const groups = groupBlocks(blocks, (block) => isRewound(block.seq, spans))
  const lastAnswer = store.isRunning.value ? null : blocks.findLast((block) => block.kind === "answer" || block.kind === "user")

  const toEnd = () => {
    if (!box.current) return
    isAtEnd.current = true
    box.current.scrollTop = box.current.scrollHeight
  }
  useLayoutEffect(toEnd, [sent])
  useLayoutEffect(() => {
    const area = box.current
    // What was added above must not move what is read.
    if (area && !isAtEnd.current && area.scrollTop < EARLY) area.scrollTop += area.scrollHeight - height.current
  }, [first])
  useEffect(() => {
    const area = box.current
    const content = area?.firstElementChild
    if (!area || !content) return
    const watcher = new ResizeObserver(() => {
      height.current = area.scrollHeight
      if (isAtEnd.current) toEnd()
    })
    watcher.observe(content)
    watcher.observe(area)
    return () => watcher.disconnect()
  }, [])
  const onScroll = () => {
    const area = box.current
    if (!area) return
    // What grows below moves the end away from a person, who did not move: only going up leaves it.
    const isNear = area.scrollHeight - area.scrollTop - area.clientHeight < NEAR
    if (isNear) isAtEnd.current = true
    else if (area.scrollTop < top.current) isAtEnd.current = false
    top.current = area.scrollTop
    setAway(!isAtEnd.current)
    if (area.scrollTop < EARLY && store.first.value > 1) store.loadOlder()
  }
  return html`<div class="transcript-frame">
    <div class="transcript" ref=${box} onScroll=${onScroll} tabindex="0" role="log" aria-live="off" aria-label="Conversation">
      <div class="column">
        ${first > 1 &&
        html`<button type="button" class="quiet-button more" onClick=${() => store.loadOlder()}>Show earlier messages</button>`}
        ${groups.map((group) =>
          group.isTaken
            ? html`<${Rewound} key=${`r${group.blocks[0]?.key}`} blocks=${group.blocks} actions=${actions} />`
            : group.blocks.map(
                (block) =>
                  html`<${Message} key=${block.key} block=${block} actions=${actions} isLast=${block === lastAnswer} />`,
              ),
        )}
        ${live.thinking && html`<${Thinking} source=${live.thinking} isLive=${!live.text} />`}
        ${live.text && html`<article class="message answer live"><${MarkdownText} source=${live.text} isLive=${true} /></article>`}
        ${children}
      </div>
    </div>
    ${isAway &&
    html`<button type="button" class="to-end" aria-label="To the end" title="To the end" onClick=${toEnd}>
      <${Icon} name="down" />
    </button>`}
  </div>`
}
