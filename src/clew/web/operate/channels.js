/** The channels of the settings: whether each is connected, and what did not arrive there. */

import { formatAge, showHidden } from "../format.js"
import { html } from "../lib.js"
import { Age } from "../parts/age.js"
import { DataTable } from "../parts/data_table.js"
import { OperatePage } from "../parts/operate_page.js"
import { useResource } from "../parts/resource.js"
import { State } from "../parts/state.js"
import { link } from "../router.js"
import { client } from "../stores/client.js"

/** @import { ChannelStatus } from "../rpc_types.d.ts" */
/** @import { Column } from "../parts/data_table.js" */

/** @param {number | null} seconds */
const describeAgo = (seconds) => (seconds === null ? "none yet" : `${formatAge(seconds * 1000)} ago`)

/** @param {{ channel: ChannelStatus }} props */
function Undelivered({ channel: { name, deliveries } }) {
  const { waiting, failed, oldest, failing, error } = deliveries
  const words = [waiting && `${waiting} waiting`, failed && `${failed} given up`].filter(Boolean).join(", ")
  if (!words) return "none"
  return html`<span>
    <a href=${link("operate", "deliveries", name)}>${words}</a>
    ${waiting > 0 && html`<div class="hint">oldest: <${Age} at=${oldest} /></div>`}
    ${failing && html`<div class="hint error-text">${showHidden(error ?? "Messages do not arrive")}</div>`}
  </span>`
}

/** @type {Column<ChannelStatus>[]} */
const COLUMNS = [
  {
    title: "Channel",
    kind: "wide",
    cell: ({ name, platform }) =>
      html`<div><strong>${name}</strong>${platform !== name && html`<div class="hint">${platform}</div>`}</div>`,
  },
  {
    title: "State",
    cell: ({ state, error }) => html`<div><${State} name=${state} why=${error && showHidden(error)} /></div>`,
  },
  { title: "For", cell: ({ since }) => html`<${Age} at=${since} />` },
  { title: "Last event", cell: ({ event }) => describeAgo(event) },
  { title: "Undelivered", cell: (channel) => html`<${Undelivered} channel=${channel} />` },
]

export function Page() {
  const channels = useResource(() => client.call("channel.list"), { every: 5000 })
  return html`<${OperatePage}
    title="Channels"
    about="The chat platforms where people reach the agent, as this gateway has them."
    resource=${channels}
  >
    <${DataTable}
      label="Channels"
      empty="No channels yet. A table [channels.NAME] in the settings adds one."
      rows=${channels.value?.items ?? []}
      columns=${COLUMNS}
    />
  <//>`
}
