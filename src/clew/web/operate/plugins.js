/** Features and plugins: whether they are on, and what they add. */

import { html } from "../lib.js"
import { DataTable } from "../parts/data_table.js"
import { InlineCode } from "../parts/inline_code.js"
import { OperatePage } from "../parts/operate_page.js"
import { useResource } from "../parts/resource.js"
import { State } from "../parts/state.js"
import { link } from "../router.js"
import { client } from "../stores/client.js"

/** @import { PluginShape } from "../rpc_types.d.ts" */
/** @import { Column } from "../parts/data_table.js" */

/** @param {{ one: PluginShape }} props */
function Additions({ one }) {
  /** @type {[string, string[], string][]} */
  const parts = [
    ["Tools", one.tools, ""],
    ["Chat commands", one.chat_commands, "/"],
    ["Commands", one.commands, "clew "],
    ["Channels", one.channels, ""],
  ]
  const named = parts.filter(([, names]) => names.length)
  if (!named.length) return "—"
  return named.map(
    ([title, names, prefix]) => html`<div key=${title} class="additions">
      <span class="muted">${title}:</span> ${names.map((name) => `${prefix}${name}`).join(", ")}
    </div>`,
  )
}

/** @type {Column<PluginShape>[]} */
const COLUMNS = [
  {
    title: "Name",
    kind: "wide",
    cell: (one) => html`<strong>${one.name}</strong>${one.about && html`<div class="hint"><${InlineCode} text=${one.about} /></div>`}`,
  },
  { title: "State", cell: (one) => html`<${State} name=${one.state} />` },
  { title: "Adds", cell: (one) => html`<${Additions} one=${one} />` },
  {
    title: "Settings",
    cell: (one) => (one.settings ? html`<a class="unbroken" href=${link("operate", "settings", one.settings)}>[${one.settings}]</a>` : "—"),
  },
]

/** @param {{ title: string, rows: PluginShape[], empty: string }} props */
function Group({ title, rows, empty }) {
  return html`<section>
    <h2>${title}</h2>
    <${DataTable} label=${title} empty=${empty} rows=${rows} columns=${COLUMNS} />
  </section>`
}

export function Page() {
  const plugins = useResource(() => client.call("plugin.list"))
  const items = plugins.value?.items ?? []
  return html`<${OperatePage}
    title="Plugins"
    about="What the gateway is made of. The settings plugins.enabled and features.disabled switch them on and off."
    resource=${plugins}
  >
    ${plugins.value?.problems.map((one) => html`<p class="error-text" key=${one}>${one}</p>`)}
    <${Group}
      title="Plugins"
      rows=${items.filter((one) => one.kind === "plugin")}
      empty="No plugins. Put a Python file into the folder plugins, and name it in plugins.enabled."
    />
    <${Group} title="Built-in features" rows=${items.filter((one) => one.kind === "feature")} empty="None" />
  <//>`
}
