/** Commands that run in the background: their output, input and end. */

import { showHidden } from "../format.js"
import { html } from "../lib.js"
import { ActionButton } from "../parts/action_button.js"
import { ConversationLink } from "../parts/conversation_link.js"
import { DataTable } from "../parts/data_table.js"
import { Menu } from "../parts/menu.js"
import { Moment } from "../parts/moment.js"
import { OperatePage } from "../parts/operate_page.js"
import { Pending } from "../parts/pending.js"
import { useResource } from "../parts/resource.js"
import { State } from "../parts/state.js"
import { go } from "../router.js"
import { client } from "../stores/client.js"
import { openDialog } from "../stores/dialog.js"

/** @import { Column } from "../parts/data_table.js" */
/** @import { ProcessShape } from "../rpc_types.d.ts" */

/** @param {{ process: string }} props */
function Output({ process }) {
  const output = useResource(() => client.call("process.output", { process }), { every: 2000, on: [process] })
  if (!output.value) return html`<${Pending} resource=${output} />`
  const { text, start, size } = output.value
  return html`${start > 0 && html`<p class="hint">The last ${size - start} of ${size} bytes.</p>`}
    <pre class="output" tabindex="0" aria-label="Output">${text || "No output yet."}</pre>`
}

/** @param {{ process: ProcessShape, reload: () => Promise<void> }} props */
function ProcessActions({ process, reload }) {
  const stop = async () => {
    await client.call("process.stop", { process: process.id })
    await reload()
  }
  const write = () =>
    openDialog({
      title: "Send input",
      fields: [
        { name: "text", label: "Line", hint: "A line end is added." },
        { name: "end", label: "End its input after that", kind: "check" },
      ],
      confirm: "Send",
      run: ({ text, end }) => client.call("process.input", { process: process.id, text: text ? `${text}\n` : "", end: end === "yes" }),
    })
  const output = { label: "Output", icon: "down", run: () => go("operate", "processes", process.id) }
  const isRunning = process.state === "running"
  return html`<span class="buttons">
    ${isRunning && html`<${ActionButton} label="Stop" about=${process.command} run=${stop} />`}
    <${Menu}
      label=${`More for ${showHidden(process.command)}`}
      items=${isRunning ? [output, { label: "Send input", icon: "send", run: write }] : [output]}
    />
  </span>`
}

/** @param {{ rest: string[] }} props */
export function Page({ rest: [shown = ""] }) {
  const processes = useResource(() => client.call("process.list", {}), { every: 3000 })
  /** @type {Column<ProcessShape>[]} */
  const columns = [
    { title: "Command", kind: "wide", cell: (process) => html`<code>${showHidden(process.command)}</code>` },
    { title: "State", cell: (process) => html`<${State} name=${process.state} why=${process.ending} />` },
    { title: "Conversation", cell: (process) => html`<${ConversationLink} id=${process.conversation} />` },
    { title: "Sandbox", cell: (process) => process.level },
    { title: "Begun", cell: (process) => html`<${Moment} at=${process.created_at} />` },
    {
      title: "Actions",
      kind: "row-actions",
      cell: (process) => html`<${ProcessActions} process=${process} reload=${processes.reload} />`,
    },
  ]
  return html`<${OperatePage}
    title="Processes"
    about="Commands of the agent that run in the background. They go on when the gateway is restarted."
    resource=${processes}
  >
    <${DataTable}
      label="Processes"
      empty="Nothing runs."
      rows=${processes.value?.items ?? []}
      columns=${columns}
      detail=${(/** @type {ProcessShape} */ process) => process.id === shown && html`<${Output} process=${process.id} />`}
    />
  <//>`
}
