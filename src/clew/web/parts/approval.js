/** A tool call that waits for a person, with all that it would run. */

import { focusAtOnce } from "../focus.js"
import { prettyJson, showHidden } from "../format.js"
import { html, useState } from "../lib.js"
import { client } from "../stores/client.js"
import { attempt } from "../stores/toasts.js"
import { Diff } from "./tool_call.js"

/** @import { ApprovalShape } from "../rpc_types.d.ts" */

/** @param {{ approval: ApprovalShape }} props */
export function Approval({ approval }) {
  const [isSent, setSent] = useState(false)
  const [note, setNote] = useState("")
  const [isExplaining, setExplaining] = useState(false)
  /**
   * @param {boolean} approve
   * @param {"hour" | "always"} [keep]
   */
  const answer = async (approve, keep) => {
    setSent(true)
    const given = { ...(keep ? { keep } : {}), ...(!approve && note.trim() ? { note: note.trim() } : {}) }
    const isStored = await attempt(() => client.call("approval.respond", { approval: approval.id, approve, ...given }))
    if (!isStored) setSent(false)
  }
  return html`<section class="approval" aria-label=${`Allow ${showHidden(approval.tool)}?`}>
    <h2>Allow <code>${showHidden(approval.tool)}</code>?</h2>
    ${approval.why && html`<p class="muted">${showHidden(approval.why)}</p>`}
    <pre class="plain" tabindex="0" aria-label="Arguments"><code>${showHidden(prettyJson(approval.args))}</code></pre>
    ${approval.preview && html`<${Diff} text=${showHidden(approval.preview)} />`}
    ${isExplaining &&
    html`<input
      class="field"
      aria-label="Why not"
      ref=${focusAtOnce}
      placeholder="Why not? The agent reads this."
      value=${note}
      onInput=${(/** @type {any} */ event) => setNote(event.currentTarget.value)}
    />`}
    <div class="buttons">
      <button type="button" class="primary" disabled=${isSent} onClick=${() => answer(true)}>Allow once</button>
      <button type="button" disabled=${isSent} onClick=${() => answer(false)}>Deny</button>
      ${!isExplaining &&
      html`<button type="button" class="quiet-button" onClick=${() => setExplaining(true)}>Say why</button>`}
    </div>
    ${approval.offer &&
    html`<div class="offer">
      <span>Or allow <code>${showHidden(approval.offer)}</code></span>
      <span class="buttons">
        <button type="button" class="quiet-button" disabled=${isSent} onClick=${() => answer(true, "hour")}>
          for an hour here
        </button>
        <button type="button" class="quiet-button" disabled=${isSent} onClick=${() => answer(true, "always")}>
          always
        </button>
      </span>
    </div>`}
  </section>`
}
