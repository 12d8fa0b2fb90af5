/** Goals: what is pursued over many turns, within which limits. */

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
import { attempt } from "../stores/toasts.js"

/** @import { Column } from "../parts/data_table.js" */
/** @import { GoalShape, RoundShape } from "../rpc_types.d.ts" */

/** @type {Column<RoundShape>[]} */
const ROUND_COLUMNS = [
  { title: "Round", kind: "number", cell: (round) => round.n },
  { title: "Time", cell: (round) => html`<${Moment} at=${round.at} />` },
  { title: "Outcome", cell: (round) => html`<${State} name=${round.state} why=${round.reason} />` },
  { title: "Verdict", kind: "wide", cell: (round) => [round.verdict, round.remark].filter(Boolean).join(": ") || "—" },
  { title: "Tokens", kind: "number", cell: (round) => formatCount(round.tokens) },
]

/** @param {{ goal: string }} props */
function Rounds({ goal }) {
  const rounds = useResource(() => client.call("goal.rounds", { goal }), { every: 5000, on: [goal] })
  if (!rounds.value) return html`<${Pending} resource=${rounds} />`
  return html`<${DataTable}
    label="Rounds"
    empty="No round yet."
    rows=${rounds.value.items}
    columns=${ROUND_COLUMNS}
    keyOf=${(/** @type {RoundShape} */ one) => String(one.n)}
  />`
}

/** @param {{ goal: GoalShape, reload: () => Promise<void> }} props */
function GoalActions({ goal, reload }) {
  /** @param {"goal.pause" | "goal.resume" | "goal.done" | "goal.stop"} method */
  const change = async (method) => {
    await client.call(method, { goal: goal.id })
    await reload()
  }
  const isPaused = goal.state === "paused"
  const hasEnded = goal.state === "done" || goal.state === "stopped"
  const rounds = { label: "Rounds", icon: "down", run: () => go("operate", "goals", goal.id) }
  const ends = [
    { label: "It is reached", icon: "check", run: () => attempt(() => change("goal.done")) },
    { label: "Give it up", icon: "stop", isDangerous: true, run: () => attempt(() => change("goal.stop")) },
  ]
  return html`<span class="buttons">
    ${!hasEnded &&
    html`<${ActionButton}
      label=${isPaused ? "Resume" : "Pause"}
      about=${goal.text}
      run=${() => change(isPaused ? "goal.resume" : "goal.pause")}
    />`}
    <${Menu} label=${`More for ${goal.text}`} items=${hasEnded ? [rounds] : [rounds, ...ends]} />
  </span>`
}

/** @param {{ rest: string[] }} props */
export function Page({ rest: [shown = ""] }) {
  const [isAll, setAll] = useState(false)
  const goals = useResource(() => client.call("goal.list", { ended: isAll }), { every: 5000, on: [isAll] })
  /** @type {Column<GoalShape>[]} */
  const columns = [
    {
      title: "Goal",
      kind: "wide",
      cell: (goal) => html`${goal.text}<div class="hint"><${ConversationLink} id=${goal.conversation} /></div>`,
    },
    { title: "State", cell: (goal) => html`<${State} name=${goal.state} why=${goal.reason?.replaceAll("_", " ")} />` },
    { title: "Rounds", kind: "number", cell: (goal) => `${goal.rounds} of ${goal.max_rounds}` },
    { title: "Tokens", kind: "number", cell: (goal) => `${formatCount(goal.tokens)} of ${formatCount(goal.budget)}` },
    { title: "Since", cell: (goal) => html`<${Moment} at=${goal.created_at} />` },
    { title: "Actions", kind: "row-actions", cell: (goal) => html`<${GoalActions} goal=${goal} reload=${goals.reload} />` },
  ]
  return html`<${OperatePage}
    title="Goals"
    about="What the agent pursues by itself, round after round. Begin one in a conversation with “/goal TEXT”."
    resource=${goals}
  >
    <${Checkbox} label="Also those that have ended" isChecked=${isAll} set=${setAll} />
    <${DataTable}
      label="Goals"
      empty="No goals."
      rows=${goals.value?.items ?? []}
      columns=${columns}
      detail=${(/** @type {GoalShape} */ goal) => goal.id === shown && html`<${Rounds} goal=${goal.id} />`}
    />
  <//>`
}
