/** The row that narrows the list of conversations. */

import { html, useEffect } from "../lib.js"
import { reload } from "../stores/conversations.js"
import { channels, loadPeople, people } from "../stores/filter_choices.js"
import { clearFilters, filters, isFiltered } from "../stores/filters.js"
import { attempt } from "../stores/toasts.js"
import { Choice } from "./choice.js"

/** @import { Filters } from "../stores/filters.js" */

/** @param {Partial<Filters>} change */
function set(change) {
  filters.value = { ...filters.value, ...change }
  reload()
}

/** @param {{ id: string, label: string, value: string, choose: (value: string) => void }} props */
function Day({ id, label, value, choose }) {
  return html`<div>
    <label for=${id}>${label}</label>
    <input id=${id} type="date" value=${value} onChange=${(/** @type {any} */ event) => choose(event.currentTarget.value)} />
  </div>`
}

export function FilterRow() {
  useEffect(() => {
    attempt(loadPeople)
  }, [])
  const { scope, channel, from, to } = filters.value
  return html`<div class="filters" role="group" aria-label="Filter">
    <${Choice}
      label="Person"
      kind=""
      choices=${[["", "Everyone"], ...people.value.map((one) => [one.scope, one.name])]}
      value=${scope}
      set=${(/** @type {string} */ value) => set({ scope: value })}
    />
    <${Choice}
      label="Channel"
      kind=""
      choices=${[["", "All"], ...channels.value.map((one) => [one.channel, one.name])]}
      value=${channel}
      set=${(/** @type {string} */ value) => set({ channel: value })}
    />
    <${Day} id="filter-from" label="From" value=${from} choose=${(/** @type {string} */ value) => set({ from: value })} />
    <${Day} id="filter-to" label="To" value=${to} choose=${(/** @type {string} */ value) => set({ to: value })} />
    ${isFiltered.value &&
    html`<button
      type="button"
      class="quiet-button"
      onClick=${() => {
        clearFilters()
        reload()
      }}
    >
      Clear the filter
    </button>`}
  </div>`
}
