/** A sentence of the documentation, with its code in backticks. */

import { html } from "../lib.js"

/** @param {{ text: string }} props */
export function InlineCode({ text }) {
  return text.split("`").map((part, at) => (at % 2 ? html`<code key=${at}>${part}</code>` : part))
}
