/** One block of a conversation: a message, an answer, a thought, a call or a note. */

import { formatSize, showHidden } from "../format.js"
import { html, useState } from "../lib.js"
import { showToast } from "../stores/toasts.js"
import { Icon } from "./icon.js"
import { MarkdownText } from "./markdown_text.js"
import { ToolCall } from "./tool_call.js"

/** @import { Block, SentFile } from "../entries.js" */
/** @typedef {{ conversation: () => string, edit: (block: Block) => void, rewind: (block: Block) => void, branch: (block: Block) => void, retry: () => void }} Actions */

/** @param {{ icon: string, label: string, run: () => void }} props */
function Action({ icon, label, run }) {
  return html`<button type="button" class="icon-button small" title=${label} aria-label=${label} onClick=${run}>
    <${Icon} name=${icon} size="15" />
  </button>`
}

const PICTURE = /^image\/(?:png|jpeg|gif|webp)$/

/** @param {string} text */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text)
    showToast("Copied")
  } catch {
    showToast("The browser does not allow to copy here", { isError: true })
  }
}

/** @param {{ source: string, isLive?: boolean }} props */
export function Thinking({ source, isLive = false }) {
  const [isOpen, setOpen] = useState(false)
  return html`<div class="thinking">
    <button type="button" class="quiet-button" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>
      <${Icon} name="thought" size="15" />${isLive ? "Thinking…" : "Thought"}
      <span class="chevron"><${Icon} name="chevron" size="14" /></span>
    </button>
    ${isOpen && html`<div class="thinking-body"><${MarkdownText} source=${source} isLive=${isLive} /></div>`}
  </div>`
}

/** @param {{ block: Block }} props */
function Attachments({ block }) {
  const { pictures = [], files = [] } = block
  if (!pictures.length && !files.length) return null
  return html`<div class="attachments">
    ${pictures.map((url) => html`<img src=${url} alt="Attached picture" loading="lazy" />`)}
    ${files.map((name) => html`<span class="file">${showHidden(name)}</span>`)}
  </div>`
}

/** @param {{ files: SentFile[] }} props */
function SentFiles({ files }) {
  return html`<div class="attachments sent">
    ${files.map(
      (file) => html`<figure key=${file.id}>
        <a href=${file.path} download=${file.name}>
          ${PICTURE.test(file.media_type) && html`<img src=${file.path} alt=${file.caption || file.name} loading="lazy" />`}
          <span class="file">${showHidden(file.name)} (${formatSize(file.size)})</span>
        </a>
        ${file.caption && html`<figcaption>${file.caption}</figcaption>`}
      </figure>`,
    )}
  </div>`
}

/** @param {{ block: Block, actions: Actions, isLast: boolean }} props */
export function Message({ block, actions, isLast }) {
  switch (block.kind) {
    case "user":
      return html`<article class="message user" aria-label="You">
        <${Attachments} block=${block} />
        ${block.text && html`<div class="bubble">${block.text}</div>`}
        <div class="actions">
          <${Action} icon="copy" label="Copy" run=${() => copy(block.text)} />
          <${Action} icon="edit" label="Edit and send again" run=${() => actions.edit(block)} />
          <${Action} icon="branch" label="Branch from here" run=${() => actions.branch(block)} />
        </div>
      </article>`
    case "answer":
      return html`<article class="message answer" aria-label="Agent">
        ${block.text && html`<${MarkdownText} source=${block.text} />`}
        ${block.sent && html`<${SentFiles} files=${block.sent} />`}
        <div class="actions">
          <${Action} icon="copy" label="Copy" run=${() => copy(block.text)} />
          ${isLast && html`<${Action} icon="retry" label="Try again" run=${actions.retry} />`}
          <${Action} icon="branch" label="Branch from here" run=${() => actions.branch(block)} />
        </div>
      </article>`
    case "thinking":
      return html`<${Thinking} source=${block.text} />`
    case "tool":
      return html`<${ToolCall} block=${block} conversation=${actions.conversation()} />`
    default:
      return html`<p class="note">${block.text}</p>`
  }
}
