/** A labelled list of which one is chosen, for what a page shows. */

import { html } from "../lib.js"

/**
 * @param {object} props
 * @param {string} props.label
 * @param {Array<[value: string, words: string]>} props.choices
 * @param {string} props.value
 * @param {string} [props.kind] how it is laid out
 * @param {(value: string) => void} props.set
 */
export function Choice({ label, choices, value, set, kind = "choice" }) {
  const id = `choice-${label.toLowerCase()}`
  return html`<div class=${kind}>
    <label for=${id}>${label}</label>
    <select id=${id} class="field" value=${value} onChange=${(/** @type {any} */ event) => set(event.currentTarget.value)}>
      ${choices.map(([one, words]) => html`<option value=${one} selected=${one === value} key=${one}>${words}</option>`)}
    </select>
  </div>`
}
