/** What all gateways work on at this moment, and what waits behind it. */

import { showHidden } from "../format.js"
import { html } from "../lib.js"
import { ActionButton } from "../parts/action_button.js"
import { Age } from "../parts/age.js"
import { ConversationLink } from "../parts/conversation_link.js"
import { DataTable } from "../parts/data_table.js"
import { OperatePage } from "../parts/operate_page.js"
import { useResource } from "../parts/resource.js"
import { State } from "../parts/state.js"
import { describeScope } from "../scopes.js"
import { client } from "../stores/client.js"

/** @import { RunningTurn, WaitingQueue } from "../rpc_types.d.ts" */
/** @import { Column } from "../parts/data_table.js" */

/** @param {{ conversation: string, title: string | null, scope: string, text?: string }} one */
const showConversation = ({ conversation, title, scope, text }) => html`<div>
  <${ConversationLink} id=${conversation} text=${title ? showHidden(title) : "Untitled"} />
  ${text && html`<div class="clipped one-line">${text}</div>`}
  ${scope !== "local" && html`<div class="hint">${describeScope(scope, []).name}</div>`}
</div>`

/** @param {RunningTurn} turn */
function showStep({ calls, steps, model }) {
  if (calls.length) {
    return html`<ul>
      ${calls.map(
        (call, place) => html`<li key=${place}>
          <code>${showHidden(call.tool)}</code>
          <span class="muted"> ${call.waits ? "waits" : html`for <${Age} at=${call.since} />`}</span>
        </li>`,
      )}
    </ul>`
  }
  return html`<div>step ${steps + 1}${model && html`<div class="hint">${model}</div>`}</div>`
}

/** @param {RunningTurn} turn */
function showHolder({ holder, state }) {
  if (!holder) return state === "waiting" ? "—" : "nobody"
  return html`<div>
    ${holder.role}<div class="hint">pid ${holder.pid} on ${showHidden(holder.host)}</div>
    ${!holder.alive && html`<div class="hint error-text">it has ended</div>`}
  </div>`
}

/** @param {{ rows: RunningTurn[], reload: () => Promise<void> }} props */
function Turns({ rows, reload }) {
  /** @type {Column<RunningTurn>[]} */
  const columns = [
    { title: "Conversation", kind: "wide", cell: showConversation },
    { title: "State", cell: (turn) => html`<${State} name=${turn.stopping ? "stopping" : turn.state} />` },
    { title: "For", cell: (turn) => html`<${Age} at=${turn.since} />` },
    { title: "Step", cell: showStep },
    { title: "Process", cell: showHolder },
    {
      title: "Actions",
      kind: "row-actions",
      cell: (turn) => html`<${ActionButton}
        label="Stop"
        about=${turn.title ?? turn.conversation}
        run=${async () => {
          await client.call("turn.interrupt", { conversation: turn.conversation })
          await reload()
        }}
      />`,
    },
  ]
  return html`<${DataTable}
    label="Turns"
    empty="The agent rests."
    rows=${rows}
    columns=${columns}
  />`
}

/** @type {Column<WaitingQueue>[]} */
const QUEUE_COLUMNS = [
  { title: "Conversation", cell: showConversation },
  { title: "Waiting", kind: "number", cell: (queue) => queue.waiting },
  {
    title: "First in line",
    kind: "wide",
    cell: (queue) => html`<ul>
      ${queue.items.map(
        (one) => html`<li key=${one.inbox_id}>
          <span class="clipped one-line">${one.text || `(${one.kind})`}</span>
          <span class="hint">for <${Age} at=${one.received_at} /></span>
        </li>`,
      )}
    </ul>`,
  },
]

export function Page() {
  const turns = useResource(() => client.call("turn.list"), { every: 2000 })
  const found = turns.value
  return html`<${OperatePage}
    title="Activity"
    about="What every gateway of this store works on now, and the messages that wait."
    resource=${turns}
  >
    ${found &&
    html`<${Turns} rows=${found.items} reload=${turns.reload} />
      <section>
        <h2>Queues</h2>
        <${DataTable}
          label="Queues"
          empty="No message waits."
          rows=${found.queues}
          columns=${QUEUE_COLUMNS}
          keyOf=${(/** @type {WaitingQueue} */ queue) => queue.conversation}
        />
      </section>
      ${found.more && html`<p class="hint">There is more than is shown here.</p>`}`}
  <//>`
}
