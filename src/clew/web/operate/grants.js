/** Calls that a person has allowed beforehand, and how to take that back. */

import { html } from "../lib.js"
import { ActionButton } from "../parts/action_button.js"
import { ConversationLink } from "../parts/conversation_link.js"
import { DataTable } from "../parts/data_table.js"
import { Moment } from "../parts/moment.js"
import { OperatePage } from "../parts/operate_page.js"
import { useResource } from "../parts/resource.js"
import { showHidden } from "../format.js"
import { client } from "../stores/client.js"

/** @import { Column } from "../parts/data_table.js" */
/** @import { GrantShape } from "../rpc_types.d.ts" */

export function Page() {
  const grants = useResource(() => client.call("grant.list"), { every: 10_000 })
  /** @param {GrantShape} grant */
  const revoke = async (grant) => {
    await client.call("grant.revoke", { grant: grant.id })
    await grants.reload()
  }
  /** @type {Column<GrantShape>[]} */
  const columns = [
    { title: "Allowed", kind: "wide", cell: (grant) => html`<code>${showHidden(grant.says)}</code>` },
    { title: "Where", cell: (grant) => (grant.conversation ? html`<${ConversationLink} id=${grant.conversation} />` : grant.scope) },
    { title: "By", cell: (grant) => grant.by },
    { title: "Since", cell: (grant) => html`<${Moment} at=${grant.created_at} />` },
    { title: "Until", cell: (grant) => (grant.expires_at ? html`<${Moment} at=${grant.expires_at} />` : "revoked") },
    {
      title: "Actions",
      kind: "row-actions",
      cell: (grant) => html`<${ActionButton} label="Revoke" about=${grant.says} run=${() => revoke(grant)} />`,
    },
  ]
  return html`<${OperatePage}
    title="Allowed calls"
    about="Tool calls that run without a question, because somebody has allowed them for an hour or always."
    resource=${grants}
  >
    <${DataTable}
      label="Allowed calls"
      empty="Nothing is allowed beforehand: each call that needs it asks."
      rows=${grants.value?.items ?? []}
      columns=${columns}
    />
  <//>`
}
