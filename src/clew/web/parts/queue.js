/** What waits: messages in the queue of the gateway, and those that it has not confirmed. */

import { focusAtOnce } from "../focus.js"
import { html, useState } from "../lib.js"
import { client } from "../stores/client.js"
import { drop, retry } from "../stores/outbox.js"
import { attempt, showToast } from "../stores/toasts.js"
import { Icon } from "./icon.js"

/** @import { QueuedShape } from "../rpc_types.d.ts" */
/** @import { OutboxItem } from "../stores/outbox.js" */

/** @param {{ item: QueuedShape }} props */
export function QueuedMessage({ item }) {
  const [draft, setDraft] = useState(/** @type {string | null} */ (null))
  const cancel = () => attempt(() => client.call("queue.cancel", { inbox_id: item.inbox_id }))
  const save = () =>
    attempt(async () => {
      const told = await client.call("queue.edit", { inbox_id: item.inbox_id, text: draft ?? "" })
      if (!told.edited) showToast("It was read already, as it was")
      setDraft(null)
    })
  if (item.kind !== "message") return html`<p class="note">Waiting: ${item.kind} ${item.text}</p>`
  return html`<div class="message user waiting">
    ${draft === null
      ? html`<div class="bubble">${item.text}</div>`
      : html`<form
          class="edit"
          onSubmit=${(/** @type {Event} */ event) => {
            event.preventDefault()
            save()
          }}
        >
          <textarea
            class="field"
            rows="3"
            aria-label="Waiting message"
            ref=${focusAtOnce}
            value=${draft}
            onInput=${(/** @type {any} */ event) => setDraft(event.currentTarget.value)}
          ></textarea>
          <div class="buttons">
            <button type="submit" class="primary">Save</button>
            <button type="button" onClick=${() => setDraft(null)}>Cancel</button>
          </div>
        </form>`}
    <div class="waiting-foot">
      <span>Queued</span>
      ${draft === null &&
      html`<button type="button" class="icon-button small" aria-label="Edit" title="Edit" onClick=${() => setDraft(item.text)}>
        <${Icon} name="edit" size="14" />
      </button>`}
      <button type="button" class="icon-button small" aria-label="Remove from the queue" title="Remove" onClick=${cancel}>
        <${Icon} name="close" size="14" />
      </button>
    </div>
  </div>`
}

/** @param {{ item: OutboxItem, isConnected: boolean }} props */
export function UnsentMessage({ item, isConnected }) {
  const isRefused = item.state === "refused"
  return html`<div class="message user waiting">
    <div class="bubble">${item.text}</div>
    <div class="waiting-foot">
      ${isRefused
        ? html`<span class="error-text">${item.reason}</span>
            <button type="button" class="quiet-button" onClick=${() => retry(item.key)}>Send again</button>
            <button type="button" class="quiet-button" onClick=${() => drop(item.key)}>Discard</button>`
        : html`<span>${item.state === "stored" ? "Sent" : isConnected ? "Sending…" : "Will be sent when connected"}</span>`}
    </div>
  </div>`
}
