/** The settings as a form: one section at a time, or those that a search finds. */

import { html, useEffect, useState } from "../lib.js"
import { Choice } from "../parts/choice.js"
import { InlineCode } from "../parts/inline_code.js"
import { OperatePage } from "../parts/operate_page.js"
import { useResource } from "../parts/resource.js"
import { SearchField } from "../parts/search_field.js"
import { NewTable, SettingField } from "../parts/setting_field.js"
import { link, replace } from "../router.js"
import { client } from "../stores/client.js"

/** @import { SettingInfoShape } from "../rpc_types.d.ts" */

/** @param {SettingInfoShape[]} items */
const listSections = (items) => [...new Set(items.map((one) => one.section))]

/**
 * @param {SettingInfoShape} one
 * @param {string} text in lower case
 */
const isAbout = (one, text) => `${one.name} ${one.help} ${one.environment}`.toLowerCase().includes(text)

/** @param {{ items: SettingInfoShape[] }} props */
function PendingNotice({ items }) {
  if (!items.length) return null
  return html`<div class="notice" role="status">
    <p>
      The file has new values that count once the gateway is started again:
      ${items.map(
        (one, at) => html`${at ? ", " : " "}<a key=${one.name} href=${link("operate", "settings", one.section)}>${one.name}</a>`,
      )}.
    </p>
  </div>`
}

/** @param {{ rest: string[] }} props */
export function Page({ rest: [chosen = ""] }) {
  const settings = useResource(() => client.call("setting.list"))
  const [sought, setSought] = useState("")
  const items = settings.value?.items ?? []
  const sections = listSections(items)
  const section = sections.includes(chosen) ? chosen : (sections[0] ?? "")
  const words = sought.trim().toLowerCase()
  const shown = items.filter((one) => (words ? isAbout(one, words) && !one.template : one.section === section))
  const isTemplate = !words && shown.some((one) => one.template)
  useEffect(() => {
    document.querySelector(".operate-body")?.scrollTo(0, 0)
  }, [section])
  return html`<${OperatePage}
    title="Settings"
    about="What the gateway does. What is changed here is checked, and written to config.toml."
    resource=${settings}
  >
    <${PendingNotice} items=${items.filter((one) => one.pending)} />
    <div class="toolbar">
      <${Choice}
        label="Section"
        kind="labelled"
        choices=${sections.map((one) => [one, one.endsWith(".NAME") ? `${one} (new)` : one])}
        value=${section}
        set=${(/** @type {string} */ name) => {
          setSought("")
          replace("operate", "settings", name)
        }}
      />
      <${SearchField} label="Search in all sections" value=${sought} set=${setSought} />
    </div>
    <p class="hint" role="status">
      ${words ? `${shown.length} ${shown.length === 1 ? "setting" : "settings"} found` : html`The file is <code>${settings.value?.file}</code>.`}
    </p>
    ${isTemplate
      ? html`<${NewTable} key=${section} section=${section} items=${shown} reload=${settings.reload} />`
      : shown.map((one) => html`<${SettingField} key=${one.name} setting=${one} reload=${settings.reload} />`)}
    ${words && !shown.length && html`<p class="empty">No setting has these words: <${InlineCode} text=${`\`${sought}\``} /></p>`}
  <//>`
}
