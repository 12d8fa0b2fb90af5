/** The MCP servers that the agent uses, and how they are. */

import { html } from "../lib.js"
import { DataTable } from "../parts/data_table.js"
import { OperatePage } from "../parts/operate_page.js"
import { useResource } from "../parts/resource.js"
import { State } from "../parts/state.js"
import { client } from "../stores/client.js"

/** @import { Column } from "../parts/data_table.js" */
/** @import { McpServerShape } from "../rpc_types.d.ts" */

/** @type {Column<McpServerShape>[]} */
const COLUMNS = [
  { title: "Server", cell: (server) => html`<strong>${server.name}</strong>` },
  { title: "Place", kind: "wide", cell: (server) => server.place },
  { title: "State", cell: (server) => html`<${State} name=${server.state} why=${server.why} />` },
  { title: "Tools", kind: "number", cell: (server) => server.tools },
  {
    title: "What to do",
    cell: (server) =>
      server.state === "needs a login" ? html`<code>clew mcp login ${server.name}</code>, or <code>/mcp login ${server.name}</code> in a chat` : "",
  },
]

export function Page() {
  const servers = useResource(() => client.call("mcp.list"), { every: 5000 })
  return html`<${OperatePage}
    title="MCP servers"
    about="Servers whose tools the agent uses. They are settings: add one with “clew mcp add NAME …”."
    resource=${servers}
  >
    <${DataTable}
      label="MCP servers"
      empty="No MCP servers."
      rows=${servers.value?.items ?? []}
      columns=${COLUMNS}
    />
  <//>`
}
