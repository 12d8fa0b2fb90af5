/** Backups of the whole store: make one, and the command that brings one back. */

import { formatNoun, formatSize } from "../format.js"
import { html } from "../lib.js"
import { ActionButton } from "../parts/action_button.js"
import { CopyButton } from "../parts/copy_button.js"
import { DataTable } from "../parts/data_table.js"
import { Moment } from "../parts/moment.js"
import { OperatePage } from "../parts/operate_page.js"
import { useResource } from "../parts/resource.js"
import { client } from "../stores/client.js"
import { openDialog } from "../stores/dialog.js"
import { showToast } from "../stores/toasts.js"

/** @import { BackupShape } from "../rpc_types.d.ts" */
/** @import { Column } from "../parts/data_table.js" */

/** @param {() => Promise<void>} reload */
const create = (reload) =>
  openDialog({
    title: "Back up the store",
    text: "Copies everything that is stored, and verifies the copy. The gateway goes on meanwhile.",
    fields: [
      { name: "name", label: "Name", value: "clew.backup", isRequired: true },
      { name: "keep", label: "How many of this name to keep", value: "2", hint: "An older one is called clew.backup.1, and so on." },
    ],
    confirm: "Back up",
    run: async ({ name = "", keep = "" }) => {
      const made = await client.call("backup.create", { name, keep: Number(keep) || 0 })
      const faults = made.repairable.length ? `; a check of the store would repair ${formatNoun(made.repairable.length, "fault")}` : ""
      showToast(`Backed up ${formatNoun(made.counts.conversation, "conversation")} with ${formatNoun(made.counts.entry, "entry", "entries")}${faults}`)
      await reload()
    },
  })

/** @param {BackupShape} backup */
const verify = async ({ name }) => {
  const found = await client.call("backup.verify", { name })
  const faults = found.repairable.length ? `; a check of the store would repair ${formatNoun(found.repairable.length, "fault")}` : ""
  showToast(`${name} is whole: ${formatNoun(found.counts.conversation ?? 0, "conversation")}${faults}`)
}

/** @type {Column<BackupShape>[]} */
const COLUMNS = [
  { title: "Backup", cell: (one) => html`<strong class="unbroken">${one.name}</strong>` },
  { title: "Taken", cell: (one) => html`<${Moment} at=${one.taken_at} />` },
  { title: "Size", kind: "number", cell: (one) => formatSize(one.size) },
  {
    title: "To bring it back",
    kind: "wide",
    cell: (one) => html`<span class="command"><code>${one.restore}</code><${CopyButton} text=${one.restore} about=${`the command for ${one.name}`} /></span>`,
  },
  {
    title: "Actions",
    kind: "row-actions",
    cell: (one) => html`<${ActionButton} label="Verify" about=${one.name} run=${() => verify(one)} />`,
  },
]

export function Page() {
  const backups = useResource(() => client.call("backup.list"), { every: 30_000 })
  return html`<${OperatePage}
    title="Backups"
    about="Copies of the whole store. To bring one back, stop the gateway and run its command on the gateway's machine: what is stored now is kept under another name."
    resource=${backups}
    actions=${html`<button type="button" class="primary" onClick=${() => create(backups.reload)}>Back up now</button>`}
  >
    <${DataTable}
      label="Backups"
      empty="No backups in this folder yet."
      rows=${backups.value?.items ?? []}
      columns=${COLUMNS}
      keyOf=${(/** @type {BackupShape} */ one) => one.file}
    />
    <p class="hint">
      They are in <code>${backups.value?.folder}</code>. Copy them to another disk as well. Only those that were made here are listed.
    </p>
  <//>`
}
