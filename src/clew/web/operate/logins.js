/** The browsers that have logged in; one more is let in by a link. */

import { html, useState } from "../lib.js"
import { ActionButton } from "../parts/action_button.js"
import { DataTable } from "../parts/data_table.js"
import { Moment } from "../parts/moment.js"
import { OperatePage } from "../parts/operate_page.js"
import { useResource } from "../parts/resource.js"
import { client } from "../stores/client.js"

/** @import { Column } from "../parts/data_table.js" */
/** @import { LoginShape } from "../rpc_types.d.ts" */

const BROWSERS = /** @type {const} */ ([["Edg", "Edge"], ["OPR", "Opera"], ["Firefox", "Firefox"], ["Chrome", "Chrome"], ["Safari", "Safari"]])
const SYSTEMS = /** @type {const} */ ([["iPhone", "iPhone"], ["iPad", "iPad"], ["Android", "Android"], ["Windows", "Windows"], ["Mac OS", "macOS"], ["Linux", "Linux"]])

/**
 * What a browser says of itself, in two words where it is a known one.
 *
 * @param {string} label
 */
function describeBrowser(label) {
  const [browser, system] = [BROWSERS, SYSTEMS].map((known) => known.find(([sign]) => label.includes(sign))?.[1])
  return browser ? [browser, system].filter(Boolean).join(" on ") : label || "unknown"
}

export function Page() {
  const logins = useResource(() => client.call("login.list"), { every: 10_000 })
  const [address, setAddress] = useState("")
  /** @param {LoginShape} login */
  const revoke = async (login) => {
    await client.call("login.revoke", { login: login.id })
    await logins.reload()
  }
  const makeLink = async () => {
    const { code } = await client.call("login.code")
    const url = new URL(document.baseURI)
    url.hash = `login=${code}`
    setAddress(url.href)
  }
  /** @type {Column<LoginShape>[]} */
  const columns = [
    { title: "Browser", kind: "wide", cell: (login) => html`<span title=${login.label}>${describeBrowser(login.label)}</span>` },
    { title: "Logged in", cell: (login) => html`<${Moment} at=${login.created_at} />` },
    { title: "Used", cell: (login) => html`<${Moment} at=${login.used_at} />` },
    { title: "Ends", cell: (login) => html`<${Moment} at=${login.expires_at} />` },
    {
      title: "Actions",
      kind: "row-actions",
      cell: (login) => html`<${ActionButton} label="Log out" about=${login.label} run=${() => revoke(login)} />`,
    },
  ]
  return html`<${OperatePage}
    title="Browsers"
    about="Browsers that have logged in at this dashboard. A login ends 30 days after it was used last."
    resource=${logins}
    actions=${html`<${ActionButton} label="Let one more in" kind="primary" run=${makeLink} />`}
  >
    ${address &&
    html`<div role="status">
      <p>Open this address once, within five minutes, in the other browser. Whoever has it is let in.</p>
      <pre class="output" tabindex="0" aria-label="Address">${address}</pre>
    </div>`}
    <${DataTable}
      label="Browsers"
      empty="No browser has logged in: without a token, this machine needs no login."
      rows=${logins.value?.items ?? []}
      columns=${columns}
    />
  <//>`
}
