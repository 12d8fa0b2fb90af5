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
    let isCurrent = true
    setTrouble("")
    entry?.load().then(
      ({ Page }) => isCurrent && setLoaded({ name, Page }),
      (error) => isCurrent && setTrouble(messageOf(error)),
    )
    return () => {
      // A page that was left before it was loaded must not take the place of the next one.
      isCurrent = false
    }
  }, [name])
  if (!entry) {
    return html`<${OperatePage} title="No such page">
      <p>There is no page <code>${name}</code>. <a href=${link("operate", "jobs")}>Go to Jobs</a>.</p>
    <//>`
  }
  if (loaded?.name === name) return html`<${loaded.Page} rest=${rest} />`
  return html`<${OperatePage} title=${entry.title}>${trouble && html`<p class="error-text" role="alert">${trouble}</p>`}<//>`
}
