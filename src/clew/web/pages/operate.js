/** One page for operators, loaded when it is opened. */

import { html, useEffect, useState } from "../lib.js"
import { OPERATE_PAGES } from "../operate/pages.js"
import { OperatePage } from "../parts/operate_page.js"
import { link } from "../router.js"
import { messageOf } from "../stores/client.js"

/** @param {{ name: string, rest: string[] }} props */
export function OperateRoute({ name, rest }) {
  const entry = OPERATE_PAGES.find((one) => one.name === name)
  const [loaded, setLoaded] = useState(/** @type {{ name: string, Page: any } | null} */ (null))
  const [trouble, setTrouble] = useState("")
  useEffect(() => {
    setTrouble("")
    entry?.load().then(
      ({ Page }) => setLoaded({ name, Page }),
      (error) => setTrouble(messageOf(error)),
    )
  }, [name])
  if (!entry) {
    return html`<${OperatePage} title="No such page">
      <p>There is no page <code>${name}</code>. <a href=${link("operate", "jobs")}>Go to Jobs</a>.</p>
    <//>`
  }
  if (loaded?.name === name) return html`<${loaded.Page} rest=${rest} />`
  return html`<${OperatePage} title=${entry.title}>${trouble && html`<p class="error-text" role="alert">${trouble}</p>`}<//>`
}
