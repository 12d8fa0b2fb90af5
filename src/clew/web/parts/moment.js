/** A moment: its date and time in words of this place, and how long ago it was. */

import { formatMoment, formatWhen } from "../format.js"
import { html } from "../lib.js"

/** @param {{ at: string | null | undefined }} props */
export function Moment({ at }) {
  if (!at) return "—"
  return html`<time datetime=${at} title=${formatWhen(at)}>${formatMoment(at)}</time>`
}
