/** Who may talk with the agent on channels: let people in, and shut them out. */

import { showHidden } from "../format.js"
import { html } from "../lib.js"
import { DataTable } from "../parts/data_table.js"
import { Menu } from "../parts/menu.js"
import { Moment } from "../parts/moment.js"
import { OperatePage } from "../parts/operate_page.js"
import { useResource } from "../parts/resource.js"
import { State } from "../parts/state.js"
import { describeScope } from "../scopes.js"
import { client } from "../stores/client.js"
import { openDialog } from "../stores/dialog.js"
import { showToast } from "../stores/toasts.js"

/** @import { AllowedPerson, LinkedAccount, PersonList, PersonShape } from "../rpc_types.d.ts" */
/** @import { Column } from "../parts/data_table.js" */
/** @typedef {{ user: string, channel: string, account?: string }} Account */

const WORDS = { asked: "waiting", paired: "has access", removed: "shut out", blocked: "blocked" }

/** @param {PersonShape} person */
const nameOf = (person) => showHidden(person.name || person.user)

/** @param {PersonShape} person */
const isWaiting = (person) =>
  person.standing === "asked" && person.code_until !== null && Date.parse(person.code_until) > Date.now()

/**
 * @param {() => Promise<void>} reload
 * @param {string} [name]
 */
const letIn = (reload, name = "somebody") =>
  openDialog({
    title: `Let ${name} in`,
    text: "The agent has shown them a code. Ask them for it: a name can be anybody's, the code is theirs.",
    fields: [{ name: "code", label: "Code", hint: "For example ABCD-EFGH", isRequired: true }],
    confirm: "Let in",
    run: async ({ code = "" }) => {
      const person = await client.call("person.let_in", { code })
      showToast(`${nameOf(person)} has access now`)
      await reload()
    },
  })

/**
 * @param {string} name
 * @param {Account} account
 * @param {() => Promise<void>} reload
 * @param {{ block: boolean }} how
 */
const shutOut = (name, account, reload, { block }) =>
  openDialog({
    title: block ? `Block ${name}?` : `Shut ${name} out?`,
    text: block
      ? "What the agent does for them ends at once, and they get no answer any more."
      : "What the agent does for them ends at once. They can ask for access again.",
    confirm: block ? "Block" : "Shut out",
    isDangerous: true,
    run: async () => {
      await client.call("person.shut_out", { ...account, block })
      await reload()
    },
  })

/** @param {{ person: PersonShape, reload: () => Promise<void> }} props */
function PersonActions({ person, reload }) {
  const { user, channel, account, standing } = person
  const name = nameOf(person)
  const whose = { user, channel, account }
  /** @type {import("../parts/menu.js").MenuItem[]} */
  const items = []
  if (standing === "asked" || standing === "paired") {
    items.push({ label: "Shut out", isDangerous: true, run: () => shutOut(name, whose, reload, { block: false }) })
  }
  if (standing === "blocked") {
    items.push({ label: "Unblock", run: () => unblock(name, whose, reload) })
  } else {
    items.push({ label: "Block", isDangerous: true, run: () => shutOut(name, whose, reload, { block: true }) })
  }
  return html`<span class="buttons">
    ${isWaiting(person) &&
    html`<button type="button" aria-label=${`Let in: ${name}`} onClick=${() => letIn(reload, name)}>Let in</button>`}
    <${Menu} label=${`More for ${name}`} items=${items} />
  </span>`
}

/**
 * @param {string} name
 * @param {Account} account
 * @param {() => Promise<void>} reload
 */
const unblock = (name, account, reload) =>
  openDialog({
    title: `Unblock ${name}?`,
    text: "They have no access, and can ask for it again.",
    confirm: "Unblock",
    run: async () => {
      await client.call("person.shut_out", account)
      await reload()
    },
  })

/** @param {{ person: PersonShape }} props */
function Standing({ person }) {
  const { standing, code_until, approved_by } = person
  const word = standing === "asked" && !isWaiting(person) ? "code expired" : (WORDS[/** @type {keyof typeof WORDS} */ (standing)] ?? standing)
  const state = standing === "paired" ? "trusted" : standing === "asked" ? "" : "refused"
  return html`<div>
    <${State} name=${state} words=${word} />
    ${isWaiting(person) && html`<div class="hint">code valid until <${Moment} at=${code_until} /></div>`}
    ${approved_by && approved_by !== "local" && html`<div class="hint">by ${showHidden(approved_by)}</div>`}
  </div>`
}

/** @param {{ list: PersonList, reload: () => Promise<void> }} props */
function Asked({ list, reload }) {
  /** @type {Column<PersonShape>[]} */
  const columns = [
    {
      title: "Person",
      kind: "wide",
      cell: (one) => html`<div><strong>${nameOf(one)}</strong>${one.name && html`<div class="hint">${showHidden(one.user)}</div>`}</div>`,
    },
    { title: "Channel", cell: (one) => one.channel },
    { title: "Access", cell: (one) => html`<${Standing} person=${one} />` },
    { title: "Since", cell: (one) => html`<${Moment} at=${one.changed_at} />` },
    { title: "Actions", kind: "row-actions", cell: (one) => html`<${PersonActions} person=${one} reload=${reload} />` },
  ]
  const rank = (/** @type {PersonShape} */ one) => (isWaiting(one) ? 0 : one.standing === "paired" ? 1 : 2)
  return html`<${DataTable}
    label="People who asked"
    empty="Nobody has asked for access yet. Who writes to the agent for the first time gets a code."
    rows=${list.items.toSorted((one, other) => rank(one) - rank(other))}
    columns=${columns}
    keyOf=${(/** @type {PersonShape} */ one) => `${one.channel} ${one.account} ${one.user}`}
  />`
}

/** @param {{ list: PersonList, reload: () => Promise<void> }} props */
function Allowed({ list, reload }) {
  if (!list.allowed.length) return null
  /** @type {Column<AllowedPerson>[]} */
  const columns = [
    { title: "Person", kind: "wide", cell: (one) => html`<strong>${one.user === "*" ? "Everyone" : one.user}</strong>` },
    { title: "Channel", cell: (one) => one.channel },
    {
      title: "Access",
      cell: (one) =>
        one.shut_out
          ? html`<${State} name="refused" words="shut out" />`
          : html`<${State} name="trusted" words=${one.operator ? "operator" : "has access"} />`,
    },
    {
      title: "Actions",
      kind: "row-actions",
      cell: (one) =>
        one.user === "*" || one.shut_out
          ? null
          : html`<button
              type="button"
              aria-label=${`Shut out: ${one.user}`}
              onClick=${() => shutOut(one.user, { user: one.user, channel: one.channel }, reload, { block: false })}
            >
              Shut out
            </button>`,
    },
  ]
  return html`<section>
    <h2>Let in by the settings</h2>
    <${DataTable}
      label="People let in by the settings"
      empty=""
      rows=${list.allowed}
      columns=${columns}
      keyOf=${(/** @type {AllowedPerson} */ one) => `${one.channel} ${one.user}`}
    />
  </section>`
}

/** @param {{ list: LinkedAccount[], known: PersonShape[], reload: () => Promise<void> }} props */
function Links({ list, known, reload }) {
  const nameOfScope = (/** @type {string} */ scope) => describeScope(scope, known).name
  if (!list.length) return null
  /** @param {LinkedAccount} link */
  const unlink = (link) =>
    openDialog({
      title: `Part ${nameOfScope(link.scope)}?`,
      text: "This account goes on without what is remembered. The first account keeps it.",
      confirm: "Part",
      isDangerous: true,
      run: async () => {
        await client.call("person.unlink", { account: link.scope })
        await reload()
      },
    })
  /** @type {Column<LinkedAccount>[]} */
  const columns = [
    { title: "Account", kind: "wide", cell: (one) => html`<strong>${nameOfScope(one.scope)}</strong>` },
    { title: "Shares the memory of", cell: (one) => nameOfScope(one.main) },
    { title: "Since", cell: (one) => html`<${Moment} at=${one.linked_at} />` },
    {
      title: "Actions",
      kind: "row-actions",
      cell: (one) => html`<button type="button" aria-label=${`Part: ${nameOfScope(one.scope)}`} onClick=${() => unlink(one)}>Part</button>`,
    },
  ]
  return html`<section>
    <h2>Linked accounts</h2>
    <${DataTable} label="Linked accounts" empty="" rows=${list} columns=${columns} keyOf=${(/** @type {LinkedAccount} */ one) => one.scope} />
  </section>`
}

export function Page() {
  const links = useResource(() => client.call("person.links"), { every: 5000 })
  const people = useResource(() => client.call("person.list"), { every: 5000 })
  const list = people.value
  return html`<${OperatePage}
    title="People"
    about="Who may talk with the agent on channels. Nobody else gets an answer."
    resource=${people}
    actions=${html`<button type="button" class="primary" onClick=${() => letIn(people.reload)}>Let somebody in</button>`}
  >
    ${list && html`<${Asked} list=${list} reload=${people.reload} /><${Allowed} list=${list} reload=${people.reload} />`}
    <${Links} list=${links.value?.items ?? []} known=${list?.items ?? []} reload=${links.reload} />
  <//>`
}
