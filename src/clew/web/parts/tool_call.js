/** A tool call: one line that opens to its arguments and its result. */

import { formatDuration, prettyJson, showHidden } from "../format.js"
import { html, useState } from "../lib.js"
import { CallFacts } from "./call_facts.js"
import { Icon } from "./icon.js"

/** @import { Block, Progress } from "../entries.js" */

/** @type {Record<Progress, string>} */
const WORDS = {
  asked: "waiting",
  running: "running",
  done: "done",
  failed: "failed",
  denied: "denied",
}
const SHOWN_FIRST = 4000

/**
 * The argument that says most, on one line.
 *
 * @param {string} args
 */
function summarize(args) {
  try {
    const given = JSON.parse(args)
    const value = Object.values(given).find((one) => typeof one === "string" && one) ?? ""
    return showHidden(String(value)).replaceAll(/\s+/g, " ").slice(0, 160)
  } catch {
    return ""
  }
}

/** @param {{ text: string }} props */
export function Diff({ text }) {
  return html`<pre class="plain diff" tabindex="0"><code>${text.split("\n").map((line, n) => {
    const kind = /^\+(?!\+\+)/.test(line) ? "added" : /^-(?!--)/.test(line) ? "removed" : ""
    return html`<span key=${n} class=${kind}>${line}${"\n"}</span>`
  })}</code></pre>`
}

/** @param {{ text: string }} props */
function LongText({ text }) {
  const [isWhole, setWhole] = useState(false)
  const isLong = text.length > SHOWN_FIRST
  return html`<pre class="plain" tabindex="0"><code>${isWhole || !isLong ? text : text.slice(0, SHOWN_FIRST)}</code></pre>
    ${isLong &&
    !isWhole &&
    html`<button type="button" class="quiet-button" onClick=${() => setWhole(true)}>
      Show all ${text.length.toLocaleString()} characters
    </button>`}`
}

/** @param {{ block: Block, conversation: string }} props */
export function ToolCall({ block, conversation }) {
  const [isOpen, setOpen] = useState(false)
  const tool = block.tool
  if (!tool) return null
  const took = tool.endedAt ? Date.parse(tool.endedAt) - Date.parse(block.at) : 0
  const isDiff = /^(?:---|@@|diff )/m.test(tool.result)
  return html`<div class=${`tool ${tool.progress}`}>
    <button type="button" class="tool-head" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>
      <span class="tool-mark">
        ${tool.progress === "running"
          ? html`<span class="spinner"></span>`
          : html`<${Icon} name=${tool.progress === "done" ? "check" : tool.progress === "asked" ? "tool" : "close"} size="15" />`}
      </span>
      <span class="tool-name">${showHidden(tool.name)}</span>
      <span class="tool-summary">${summarize(tool.args)}</span>
      <span class="tool-state">
        ${tool.progress === "done" && took > 0 ? formatDuration(took) : WORDS[tool.progress]}
      </span>
      <span class="chevron"><${Icon} name="chevron" size="15" /></span>
    </button>
    ${isOpen &&
    html`<div class="tool-body">
      <${CallFacts} block=${block} conversation=${conversation} />
      <div class="tool-label">Arguments</div>
      <pre class="plain" tabindex="0"><code>${showHidden(prettyJson(tool.args))}</code></pre>
      ${tool.result &&
      html`<div class="tool-label">Result</div>
        ${isDiff ? html`<${Diff} text=${tool.result} />` : html`<${LongText} text=${tool.result} />`}`}
    </div>`}
  </div>`
}
