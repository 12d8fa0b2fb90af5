/** A labelled field by which a page finds some of what it shows. */

import { html } from "../lib.js"

/** @param {{ label: string, value: string, set: (value: string) => void }} props */
export function SearchField({ label, value, set }) {
  return html`<div class="labelled">
    <label for="search-field">${label}</label>
    <input
      id="search-field"
      class="field"
      type="search"
      value=${value}
      onInput=${(/** @type {any} */ event) => set(event.currentTarget.value)}
    />
  </div>`
}
