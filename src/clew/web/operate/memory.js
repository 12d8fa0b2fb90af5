/** What the agent remembers: seen, corrected, forgotten. */

import { html, useState } from "../lib.js"
import { ConversationLink } from "../parts/conversation_link.js"
import { DataTable } from "../parts/data_table.js"
import { Menu } from "../parts/menu.js"
import { OperatePage } from "../parts/operate_page.js"
import { useResource } from "../parts/resource.js"
import { client } from "../stores/client.js"
import { openDialog } from "../stores/dialog.js"
import { attempt, showToast } from "../stores/toasts.js"

/** @import { Column } from "../parts/data_table.js" */
/** @import { FactShape } from "../rpc_types.d.ts" */

const KINDS = /** @type {const} */ (["fact", "preference", "profile", "plan"])
const LOCAL = "local"

/** @param {{ fact: FactShape, reload: () => Promise<void> }} props */
function FactActions({ fact, reload }) {
  const edit = () =>
    openDialog({
      title: "Correct this",
      fields: [{ name: "text", label: "What is remembered", kind: "area", value: fact.text ?? "", isRequired: true }],
      confirm: "Save",
      run: async ({ text }) => {
        await client.call("memory.edit", { fact: fact.id, text })
        await reload()
      },
    })
  const pin = () =>
    attempt(async () => {
      await client.call("memory.edit", { fact: fact.id, pinned: !fact.pinned })
      await reload()
    })
  const forget = () =>
    openDialog({
      title: "Forget this?",
      text: `“${fact.text}” is erased, also from the messages in which it was said.`,
      confirm: "Forget",
      isDangerous: true,
      run: async () => {
        const told = await client.call("memory.forget", { fact: fact.id })
        showToast(told.remark)
        await reload()
      },
    })
  return html`<${Menu}
    label=${`Actions for ${fact.text}`}
    items=${[
      { label: "Correct", icon: "edit", run: edit },
      { label: fact.pinned ? "Unpin" : "Pin", icon: "check", run: pin },
      { label: "Forget", icon: "trash", isDangerous: true, run: forget },
    ]}
  />`
}

/**
 * @param {string} scope
 * @param {() => Promise<void>} reload
 */
const addFact = (scope, reload) =>
  openDialog({
    title: "Remember something",
    fields: [
      { name: "text", label: "What to remember", kind: "area", isRequired: true },
      { name: "kind", label: "Kind", choices: [...KINDS], value: "fact" },
    ],
    confirm: "Remember",
    run: async ({ text = "", kind }) => {
      await client.call("memory.add", { text, scope, kind: KINDS.find((one) => one === kind) })
      await reload()
    },
  })

export function Page() {
  const [scope, setScope] = useState(LOCAL)
  const [query, setQuery] = useState("")
  const wanted = query.trim()
  const facts = useResource(
    () => (wanted ? client.call("memory.search", { scope, query: wanted, limit: 50 }) : client.call("memory.list", { scope })),
    { every: 10_000, on: [scope, wanted] },
  )
  /** @type {Column<FactShape>[]} */
  const columns = [
    { title: "No.", kind: "number", cell: (fact) => fact.number },
    {
      title: "What",
      kind: "wide",
      cell: (fact) => html`${fact.text}${fact.pinned && html` <span class="state">pinned</span>`}`,
    },
    { title: "Kind", cell: (fact) => fact.kind },
    {
      title: "From",
      cell: (fact) => html`${fact.source}${fact.conversation && html`<div class="hint"><${ConversationLink} id=${fact.conversation} /></div>`}`,
    },
    { title: "Used", kind: "number", cell: (fact) => fact.uses },
    { title: "Actions", kind: "row-actions", cell: (fact) => html`<${FactActions} fact=${fact} reload=${facts.reload} />` },
  ]
  return html`<${OperatePage}
    title="Memory"
    about="What the agent remembers about a person, or shares with all."
    resource=${facts}
    actions=${html`<button type="button" class="primary" onClick=${() => addFact(scope, facts.reload)}>Remember</button>`}
  >
    <div class="toolbar">
      <input
        class="field"
        type="search"
        placeholder="Search"
        aria-label="Search what is remembered"
        value=${query}
        onInput=${(/** @type {any} */ event) => setQuery(event.currentTarget.value)}
      />
      <label class="inline-field">
        Of
        <input
          class="field"
          list="scopes"
          aria-label="Scope"
          value=${scope}
          onChange=${(/** @type {any} */ event) => setScope(event.currentTarget.value.trim() || LOCAL)}
        />
      </label>
      <datalist id="scopes"><option value="local"></option><option value="shared"></option></datalist>
    </div>
    <${DataTable}
      label="What is remembered"
      empty=${wanted ? "Nothing found." : "Nothing is remembered here yet."}
      rows=${facts.value?.items ?? []}
      columns=${columns}
    />
  <//>`
}
