/** Tokens and cost: by day as a plot, and by what you choose as a table. */

import { formatCost, formatCount, showHidden } from "../format.js"
import { html, useState } from "../lib.js"
import { BarPlot } from "../parts/bar_plot.js"
import { Choice } from "../parts/choice.js"
import { ConversationLink } from "../parts/conversation_link.js"
import { DataTable } from "../parts/data_table.js"
import { OperatePage } from "../parts/operate_page.js"
import { useResource } from "../parts/resource.js"
import { describeScope } from "../scopes.js"
import { client } from "../stores/client.js"

/** @import { PersonShape, UsageSum } from "../rpc_types.d.ts" */
/** @import { Column } from "../parts/data_table.js" */
/** @typedef {"day" | "model" | "conversation" | "channel" | "person"} Dimension */

/** @type {Array<[string, string]>} */
const PERIODS = [["7", "7 days"], ["30", "30 days"], ["90", "90 days"], ["365", "A year"]]
/** @type {Array<[Dimension, string]>} */
const DIMENSIONS = [
  ["day", "Day"],
  ["model", "Model"],
  ["conversation", "Conversation"],
  ["channel", "Channel"],
  ["person", "Person or chat"],
]

/** @param {UsageSum} one */
const describeCost = ({ cost, unpriced }) => {
  if (cost === null) return "—"
  return `${unpriced ? "at least " : ""}${formatCost(cost)}`
}

/** @param {UsageSum} one */
const tokensOf = (one) => one.input_tokens + one.output_tokens

/**
 * The days of a period at this place, the last one being today.
 *
 * @param {number} count
 */
function listDays(count) {
  const today = new Date()
  return Array.from({ length: count }, (_, place) => {
    const day = new Date(today.getFullYear(), today.getMonth(), today.getDate() - (count - 1 - place))
    return `${day.getFullYear()}-${String(day.getMonth() + 1).padStart(2, "0")}-${String(day.getDate()).padStart(2, "0")}`
  })
}

/**
 * @param {Dimension} by
 * @param {UsageSum} one
 * @param {PersonShape[]} known
 */
function showKey(by, { key, title }, known) {
  if (by === "conversation") return html`<${ConversationLink} id=${key} text=${title ? showHidden(title) : "Untitled"} />`
  if (by === "person" || key === "local") return describeScope(key, known).name
  return showHidden(key)
}

/** @param {{ days: number, items: UsageSum[] }} props */
function DayPlot({ days, items }) {
  const found = new Map(items.map((one) => [one.key, one]))
  const isPriced = items.some((one) => (one.cost ?? 0) > 0)
  const bars = listDays(days).map((name) => {
    const one = found.get(name)
    if (!one) return { name, value: 0, words: "nothing" }
    return isPriced
      ? { name, value: one.cost ?? 0, words: describeCost(one) }
      : { name, value: tokensOf(one), words: `${formatCount(tokensOf(one))} tokens` }
  })
  return html`<${BarPlot} label=${isPriced ? "Cost by day" : "Tokens by day"} bars=${bars} />`
}

export function Page() {
  const [days, setDays] = useState("30")
  const [by, setBy] = useState(/** @type {Dimension} */ ("model"))
  const count = Number(days)
  /** @param {Dimension} key */
  const read = (key) => {
    const [first = ""] = listDays(count)
    const since = new Date(`${first}T00:00`).toISOString()
    return client.call("usage.summary", { by: key, since, offset: -new Date().getTimezoneOffset() })
  }
  const daily = useResource(() => read("day"), { every: 60_000, on: [days] })
  const usage = useResource(async () => ({ by, ...(await read(by)) }), { every: 60_000, on: [days, by] })
  const people = useResource(() => client.call("person.list"))
  const total = usage.value?.total
  // Until the next answer is there, the last one is shown as what it is.
  const shown = usage.value?.by ?? by
  const [, word = ""] = DIMENSIONS.find(([one]) => one === shown) ?? []
  /** @type {Column<UsageSum>[]} */
  const columns = [
    { title: word, kind: "wide", cell: (one) => showKey(shown, one, people.value?.items ?? []) },
    { title: "Turns", kind: "number", cell: (one) => one.turns.toLocaleString() },
    { title: "Requests", kind: "number", cell: (one) => one.requests.toLocaleString() },
    { title: "Tokens in", kind: "number", cell: (one) => formatCount(one.input_tokens) },
    { title: "From cache", kind: "number", cell: (one) => formatCount(one.cached_tokens) },
    { title: "Tokens out", kind: "number", cell: (one) => formatCount(one.output_tokens) },
    { title: "Cost", kind: "number", cell: describeCost },
  ]
  const rows = usage.value?.items ?? []
  return html`<${OperatePage} title="Tokens and cost" about="What the agent has used, by the models' own counts." resource=${usage}>
    <div class="toolbar">
      <${Choice} label="Last" value=${days} choices=${PERIODS} set=${setDays} />
      <${Choice} label="By" value=${by} choices=${DIMENSIONS} set=${setBy} />
    </div>
    ${total &&
    html`<p class="total">
      ${total.cost !== null && html`<strong>${describeCost(total)}</strong> · `}<strong>${formatCount(tokensOf(total))}</strong> tokens · <strong>${total.turns.toLocaleString()}</strong> turns
    </p>`}
    ${total && total.unpriced > 0 && html`<p class="hint">The price of ${total.unpriced.toLocaleString()} requests is not known.</p>`}
    ${daily.value && html`<${DayPlot} days=${count} items=${daily.value.items} />`}
    <${DataTable}
      label="Usage"
      empty="Nothing was used in this time."
      rows=${shown === "day" ? rows.toReversed() : rows}
      columns=${columns}
      keyOf=${(/** @type {UsageSum} */ one) => one.key}
    />
    ${usage.value?.more && html`<p class="hint">Only the first are shown.</p>`}
  <//>`
}
