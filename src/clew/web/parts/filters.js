/** The row that narrows the list of conversations. */

import { html, useEffect } from "../lib.js"
import { reload } from "../stores/conversations.js"
import { channels, clearFilters, filters, isFiltered, loadPeople, people } from "../stores/filters.js"
import { attempt } from "../stores/toasts.js"

/** @import { Filters } from "../stores/filters.js" */

/** @param {Partial<Filters>} change */
function set(change) {
  filters.value = { ...filters.value, ...change }
  reload()
}

/** @param {{ id: string, label: string, value: string, all: string, options: Array<{ value: string, name: string }>, choose: (value: string) => void }} props */
function Choice({ id, label, value, all, options, choose }) {
  return html`<div>
    <label for=${id}>${label}</label>
    <select id=${id} value=${value} onChange=${(/** @type {any} */ event) => choose(event.currentTarget.value)}>
      <option value="">${all}</option>
      ${options.map((one) => html`<option key=${one.value} value=${one.value}>${one.name}</option>`)}
    </select>
  </div>`
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
      id="filter-person"
      label="Person"
      all="Everyone"
      value=${scope}
      options=${people.value.map((one) => ({ value: one.scope, name: one.name }))}
      choose=${(/** @type {string} */ value) => set({ scope: value })}
    />
    <${Choice}
      id="filter-channel"
      label="Channel"
      all="All"
      value=${channel}
      options=${channels.value.map((one) => ({ value: one.channel, name: one.name }))}
      choose=${(/** @type {string} */ value) => set({ channel: value })}
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
