/** A button that copies a text. */

import { html, useState } from "../lib.js"
import { attempt } from "../stores/toasts.js"
import { Icon } from "./icon.js"

/** @param {{ text: string, about: string }} props */
export function CopyButton({ text, about }) {
  const [isCopied, setCopied] = useState(false)
  const copy = async () => {
    if (!(await attempt(() => navigator.clipboard.writeText(text)))) return
    setCopied(true)
    setTimeout(() => setCopied(false), 2000)
  }
  const label = `Copy ${about}`
  return html`<button type="button" class="icon-button small" aria-label=${label} title=${label} onClick=${copy}>
    <${Icon} name=${isCopied ? "check" : "copy"} size="16" />
  </button>`
}
