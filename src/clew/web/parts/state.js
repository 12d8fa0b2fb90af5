/** A state in a word, with a colour where it is good or bad news. */

import { html } from "../lib.js"

const GOOD = new Set(["active", "on", "running", "up", "connected", "trusted", "done", "delivered", "achieved", "fired", "ok"])
const BAD = new Set(["failed", "lost", "down", "refused", "degraded", "changed", "needs login", "needs a login", "given_up", "fail", "error", "critical"])

/** @param {{ name: string, words?: string, why?: string | null }} props */
export function State({ name, words, why }) {
  const kind = GOOD.has(name) ? "good" : BAD.has(name) ? "bad" : ""
  return html`<span class=${`state ${kind}`}>${words ?? name.replaceAll("_", " ")}</span>${why && html`<div class="hint">${why}</div>`}`
}
