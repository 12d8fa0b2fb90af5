/** A box that is checked or not. */

import { html } from "../lib.js"

/** @param {{ label: string, isChecked: boolean, set: (isChecked: boolean) => void }} props */
export function Checkbox({ label, isChecked, set }) {
  return html`<label class="check">
    <input type="checkbox" checked=${isChecked} onChange=${(/** @type {any} */ event) => set(event.currentTarget.checked)} />
    ${label}
  </label>`
}
