/** Where older messages became a summary: the summary, folded, and the way back. */

import { html, useState } from "../lib.js"
import { Icon } from "./icon.js"
import { MarkdownText } from "./markdown_text.js"

/** @import { Compaction } from "../lineage.js" */

/** @param {{ compaction: Compaction, undo: () => Promise<void> }} props */
export function CompactionMark({ compaction, undo }) {
  const [isOpen, setOpen] = useState(false)
  const [isBusy, setBusy] = useState(false)
  const { summary, keptFrom, seq, isUndone, isHead } = compaction
  const until = keptFrom === null ? seq : keptFrom - 1
  const run = async () => {
    setBusy(true)
    await undo()
    setBusy(false)
  }
  return html`<section class="compaction" data-seq=${seq} aria-label="Summary of older messages">
    <div class="compaction-line">
      <button type="button" class="quiet-button" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>
        ${isUndone ? "Summary, undone" : "Older messages were summarised"}
        <span class="chevron"><${Icon} name="chevron" size="14" /></span>
      </button>
      ${isHead &&
      !isUndone &&
      html`<button type="button" class="quiet-button" disabled=${isBusy} onClick=${run}>Undo</button>`}
    </div>
    ${isOpen &&
    html`<div class="compaction-body">
      <p class="muted">
        ${isUndone ? "The model read" : "The model reads"} this in place of messages 1 to ${until}, which stay above.
        ${keptFrom !== null && keptFrom <= seq && html` Messages ${keptFrom} to ${seq} stay as they are.`}
      </p>
      <${MarkdownText} source=${summary} />
    </div>`}
  </section>`
}
