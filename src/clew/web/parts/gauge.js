/** How full the context is, what it has cost, and which model answers. */

import { formatCost, formatCount } from "../format.js"
import { html, useEffect, useState } from "../lib.js"
import { client } from "../stores/client.js"
import { attempt } from "../stores/toasts.js"
import { Menu } from "./menu.js"

/** @import { UsageShape } from "../rpc_types.d.ts" */

/** @param {{ usage: UsageShape | null }} props */
export function Gauge({ usage }) {
  if (!usage) return null
  const share = usage.context_window ? Math.min(1, usage.context_tokens / usage.context_window) : 0
  const words = usage.context_window
    ? `${Math.round(share * 100)}% of ${formatCount(usage.context_window)}`
    : `${formatCount(usage.context_tokens)} tokens`
  const cost = usage.cost ? formatCost(usage.cost) : ""
  return html`<span class="gauge" title=${`Context: ${usage.context_tokens.toLocaleString()} tokens`}>
    ${usage.context_window &&
    html`<svg width="16" height="16" viewBox="0 0 20 20" aria-hidden="true">
      <circle cx="10" cy="10" r="8" class="gauge-track" />
      <circle cx="10" cy="10" r="8" class="gauge-fill" stroke-dasharray=${`${share * 50.3} 50.3`} />
    </svg>`}
    <span>${words}</span>${cost && html`<span>${cost}</span>`}
  </span>`
}

/** @param {{ conversation: string, model: string }} props */
export function ModelMenu({ conversation, model }) {
  const [names, setNames] = useState(/** @type {string[]} */ ([]))
  useEffect(() => {
    client.call("model.list", { conversation }).then(
      (told) => setNames(told.items),
      () => setNames([]),
    )
  }, [conversation])
  /** @param {string} name */
  const choose = (name) => attempt(() => client.call("model.set", { conversation, model: name }))
  const short = model.split(":").at(-1) ?? model
  if (names.length < 2) return html`<span class="model" title=${model}>${short}</span>`
  const items = names.map((name) => ({ label: name, icon: name === model ? "check" : undefined, run: () => choose(name) }))
  return html`<${Menu} label="Model" text=${short} items=${items} />`
}
