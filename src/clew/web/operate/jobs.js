/** Scheduled work: when it fires next, what became of it, and what can be done with it. */

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
import { attempt, showToast } from "../stores/toasts.js"

/** @import { FireShape, JobShape } from "../rpc_types.d.ts" */
/** @import { Column } from "../parts/data_table.js" */

const TIMES = [
  { name: "at", label: "Once at", hint: "For example 2027-01-31 18:00, or “in 2 hours”" },
  { name: "every", label: "Or every", hint: "For example 30m or 1d" },
  { name: "cron", label: "Or by cron", hint: "For example 0 8 * * 1-5" },
  { name: "zone", label: "Time zone", hint: "For example Europe/Berlin; the gateway's own if empty" },
]

/** @param {Record<string, string>} given */
const onlyGiven = (given) => Object.fromEntries(Object.entries(given).filter(([, value]) => value.trim()))

/** @param {() => Promise<void>} reload */
const addJob = (reload) =>
  openDialog({
    title: "Add a job",
    fields: [
      { name: "task", label: "What the agent is to do", kind: "area", isRequired: true },
      { name: "title", label: "Title", hint: "From the task if empty" },
      ...TIMES,
    ],
    confirm: "Add",
    run: async ({ task = "", ...given }) => {
      const job = await client.call("job.add", { task, ...onlyGiven(given) })
      showToast(`Added “${job.title}”`)
      await reload()
    },
  })

/**
 * @param {JobShape} job
 * @param {() => Promise<void>} reload
 */
const editJob = (job, reload) =>
  openDialog({
    title: `When “${job.title}” fires`,
    fields: TIMES.map((field) => ({
      ...field,
      value: field.name === "zone" ? job.zone : String(job.schedule[field.name] ?? ""),
    })),
    confirm: "Save",
    run: async (given) => {
      await client.call("job.edit", { job: job.id, ...onlyGiven(given) })
      await reload()
    },
  })

/** @param {{ job: JobShape, reload: () => Promise<void> }} props */
function JobActions({ job, reload }) {
  /** @param {"job.run" | "job.pause" | "job.resume" | "job.remove"} method */
  const change = async (method) => {
    await client.call(method, { job: job.id })
    await reload()
  }
  const isPaused = job.state === "paused"
  const remove = () =>
    openDialog({
      title: `Remove “${job.title}”?`,
      text: "It does not fire again. What it did stays in its conversations.",
      confirm: "Remove",
      isDangerous: true,
      run: () => change("job.remove"),
    })
  return html`<span class="buttons">
    <${ActionButton}
      label=${isPaused ? "Resume" : "Pause"}
      about=${job.title}
      run=${() => change(isPaused ? "job.resume" : "job.pause")}
    />
    <${Menu}
      label=${`More for ${job.title}`}
      items=${[
        {
          label: "Run now",
          icon: "retry",
          run: () =>
            attempt(async () => {
              await change("job.run")
              showToast(`“${job.title}” runs now`)
            }),
        },
        { label: "Change its time", icon: "edit", run: () => editJob(job, reload) },
        { label: "Log", icon: "down", run: () => go("operate", "jobs", job.id) },
        { label: "Remove", icon: "trash", isDangerous: true, run: remove },
      ]}
    />
  </span>`
}

/** @type {Column<FireShape>[]} */
const FIRE_COLUMNS = [
  { title: "Time", cell: (fire) => html`<${Moment} at=${fire.slot} />` },
  { title: "Outcome", cell: (fire) => html`<${State} name=${fire.state} why=${fire.reason} />` },
  { title: "Report", cell: (fire) => fire.report ?? "—" },
  { title: "Conversation", cell: (fire) => html`<${ConversationLink} id=${fire.conversation} />` },
]

/** @param {{ job: string }} props */
function JobLog({ job }) {
  const fires = useResource(() => client.call("job.log", { job }), { every: 5000, on: [job] })
  if (!fires.value) return html`<${Pending} resource=${fires} />`
  return html`<${DataTable} label="Fires" empty="It has not fired yet." rows=${fires.value.items} columns=${FIRE_COLUMNS} keyOf=${(/** @type {FireShape} */ one) => one.slot} />`
}

/** @param {JobShape} job */
const describeSchedule = (job) => Object.entries(job.schedule).map(([kind, value]) => `${kind} ${value}`).join(", ")

/** @param {{ rest: string[] }} props */
export function Page({ rest: [shown = ""] }) {
  const [isAll, setAll] = useState(false)
  const jobs = useResource(() => client.call("job.list", { done: isAll }), { every: 5000, on: [isAll] })
  /** @type {Column<JobShape>[]} */
  const columns = [
    {
      title: "Job",
      kind: "wide",
      cell: (job) => html`<strong>${job.title}</strong>${job.title !== job.task && html`<div class="hint">${job.task}</div>`}`,
    },
    { title: "Schedule", cell: (job) => html`${describeSchedule(job)}<div class="hint">${job.zone}</div>` },
    { title: "Next", cell: (job) => html`<${Moment} at=${job.next[0]} />` },
    {
      title: "State",
      cell: (job) => html`<${State} name=${job.state} why=${job.reason} />
        ${job.waits && html`<div class="hint"><${ConversationLink} id=${job.waits} text="waits for an answer" /></div>`}`,
    },
    { title: "Actions", kind: "row-actions", cell: (job) => html`<${JobActions} job=${job} reload=${jobs.reload} />` },
  ]
  return html`<${OperatePage}
    title="Jobs"
    about="What the agent does by itself, at its times."
    resource=${jobs}
    actions=${html`<button type="button" class="primary" onClick=${() => addJob(jobs.reload)}>Add a job</button>`}
  >
    <${Checkbox} label="Also those that have ended" isChecked=${isAll} set=${setAll} />
    <${DataTable}
      label="Jobs"
      empty="No jobs yet. Add one here, or ask the agent to remind you of something."
      rows=${jobs.value?.items ?? []}
      columns=${columns}
      detail=${(/** @type {JobShape} */ job) => job.id === shown && html`<${JobLog} job=${job.id} />`}
    />
  <//>`
}
