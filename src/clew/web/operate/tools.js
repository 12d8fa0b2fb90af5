/** The tools of the agent: what a second call does, and what happens when one is called. */

import { EFFECTS } from "../effects.js"
import { html, useState } from "../lib.js"
import { DataTable } from "../parts/data_table.js"
import { OperatePage } from "../parts/operate_page.js"
import { useResource } from "../parts/resource.js"
import { SearchField } from "../parts/search_field.js"
import { link } from "../router.js"
import { client } from "../stores/client.js"

/** @import { ToolRulesShape, ToolShape } from "../rpc_types.d.ts" */
/** @import { Column } from "../parts/data_table.js" */

/** @type {Record<string, string>} */
const EVERY = { allow: "runs", ask: "asks", deny: "denied" }
/** @type {Record<string, string>} */
const SOME = { allow: "some run", ask: "some ask", deny: "some denied" }

/** @param {ToolRulesShape} rules */
function describeRules({ every, some }) {
  const told = some.map((one) => `${SOME[one.then]} (rule ${one.rule})`)
  if (every) told.unshift(`${EVERY[every.then]} (rule ${every.rule})`)
  return told.join("; ") || "—"
}

/** @type {Column<ToolShape>[]} */
const COLUMNS = [
  { title: "Tool", cell: (one) => html`<code>${one.name}</code>` },
  {
    title: "Effect",
    cell: (one) => (one.effect ? html`${one.effect}<div class="hint">${EFFECTS[one.effect]}</div>` : "known when it is opened"),
  },
  { title: "A call", cell: (one) => (one.default === "by call" ? "is decided by its arguments" : one.default) },
  { title: "Rules", cell: (one) => describeRules(one.rules) },
  { title: "Results", cell: (one) => (one.untrusted ? "text of strangers" : "—") },
  { title: "From", cell: (one) => one.feature },
]

export function Page() {
  const tools = useResource(() => client.call("tool.list"))
  const [sought, setSought] = useState("")
  const words = sought.trim().toLowerCase()
  const items = tools.value?.items ?? []
  return html`<${OperatePage} title="Tools" about="What the agent can do, and what asks first." resource=${tools}>
    <p>
      Commands run at the sandbox level <strong>${tools.value?.sandbox}</strong>. See the settings${" "}
      <a href=${link("operate", "settings", "sandbox")}>[sandbox]</a> and${" "}
      <a href=${link("operate", "settings", "approvals")}>[approvals]</a>.
    </p>
    <div class="toolbar">
      <${SearchField} label="Search" value=${sought} set=${setSought} />
    </div>
    <${DataTable}
      label="Tools"
      empty=${items.length ? "No tool has this name." : "The agent has no tools."}
      rows=${items.filter((one) => `${one.name} ${one.feature}`.toLowerCase().includes(words))}
      columns=${COLUMNS}
    />
  <//>`
}
