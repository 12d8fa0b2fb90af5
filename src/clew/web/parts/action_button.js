/** A button that changes something at the gateway; it is off until the answer is there. */

import { html, useState } from "../lib.js"
import { attempt } from "../stores/toasts.js"

/** @param {{ label: string, run: () => Promise<unknown>, about?: string, kind?: string }} props */
export function ActionButton({ label, run, about, kind = "" }) {
  const [isSent, setSent] = useState(false)
  const press = async () => {
    setSent(true)
    await attempt(run)
    setSent(false)
  }
  return html`<button
    type="button"
    class=${kind}
    disabled=${isSent}
    aria-label=${about ? `${label}: ${about}` : undefined}
    onClick=${press}
  >
    ${label}
  </button>`
}
