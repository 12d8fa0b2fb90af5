/** How long ago something was, in one word or two; its moment is shown on demand. */

import { formatAge } from "../format.js"
import { html } from "../lib.js"

/** @param {{ at: string | null | undefined }} props */
export function Age({ at }) {
  if (!at) return "—"
  const then = new Date(at)
  return html`<time datetime=${at} title=${then.toLocaleString()}>${formatAge(Date.now() - then.getTime())}</time>`
}
