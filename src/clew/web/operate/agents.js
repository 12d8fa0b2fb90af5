/** Work that the agent has delegated to agents of its own. */

import { formatCount } from "../format.js"
import { html, useState } from "../lib.js"
import { ActionButton } from "../parts/action_button.js"
import { Checkbox } from "../parts/checkbox.js"
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
import { showToast } from "../stores/toasts.js"

/** @import { Column } from "../parts/data_table.js" */
/** @import { TaskShape } from "../rpc_types.d.ts" */

/** @param {{ task: string }} props */
function TaskResult({ task }) {
  const answer = useResource(() => client.call("agent.read", { task }), { every: 5000, on: [task] })
  if (!answer.value) return html`<${Pending} resource=${answer} />`
  const { text, size } = answer.value
  return html`<pre class="output" tabindex="0" aria-label="Result">${text || "No result yet."}</pre>
    ${size > text.length && html`<p class="hint">The first ${text.length} of ${size} characters.</p>`}`
}

/** @param {{ task: TaskShape, reload: () => Promise<void> }} props */
function TaskActions({ task, reload }) {
  const stop = async () => {
    await client.call("agent.stop", { task: task.id })
    await reload()
  }
  const tell = () =>
    openDialog({
      title: `Tell “${task.title}” something`,
      fields: [{ name: "text", label: "Message", kind: "area", isRequired: true }],
      confirm: "Send",
      run: async ({ text = "" }) => {
        await client.call("agent.tell", { task: task.id, text })
        showToast("Sent")
      },
    })
  const result = { label: "Result", icon: "down", run: () => go("operate", "agents", task.id) }
  return html`<span class="buttons">
    ${!task.ended && html`<${ActionButton} label="Stop" about=${task.title} run=${stop} />`}
    <${Menu}
      label=${`More for ${task.title}`}
      items=${task.ended ? [result] : [result, { label: "Tell it something", icon: "send", run: tell }]}
    />
  </span>`
}

/** @param {{ rest: string[] }} props */
export function Page({ rest: [shown = ""] }) {
  const [isAll, setAll] = useState(true)
  const tasks = useResource(() => client.call("agent.list", { done: isAll }), { every: 3000, on: [isAll] })
  /** @type {Column<TaskShape>[]} */
  const columns = [
    {
      title: "Task",
      kind: "wide",
      cell: (task) => html`${task.title}
        <div class="hint">${task.agent ?? "its own agent"}, for <${ConversationLink} id=${task.root} text="this conversation" /></div>`,
    },
    {
      title: "State",
      cell: (task) => html`<${State} name=${task.state} why=${task.waits ? "waits for an answer" : task.reason} />`,
    },
    { title: "Steps", kind: "number", cell: (task) => `${task.steps} of ${task.max_steps}` },
    { title: "Tokens", kind: "number", cell: (task) => formatCount(task.usage.input_tokens + task.usage.output_tokens) },
    { title: "Begun", cell: (task) => html`<${Moment} at=${task.started} />` },
    { title: "Actions", kind: "row-actions", cell: (task) => html`<${TaskActions} task=${task} reload=${tasks.reload} />` },
  ]
  return html`<${OperatePage} title="Delegated work" about="Tasks that the agent has given to agents of its own." resource=${tasks}>
    <${Checkbox} label="Also those that have ended" isChecked=${isAll} set=${setAll} />
    <${DataTable}
      label="Delegated work"
      empty="Nothing is delegated."
      rows=${tasks.value?.items ?? []}
      columns=${columns}
      detail=${(/** @type {TaskShape} */ task) => task.id === shown && html`<${TaskResult} task=${task.id} />`}
    />
  <//>`
}
