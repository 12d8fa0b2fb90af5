/** Skills: which there are, what they would do, and whether they are trusted. */

import { showHidden } from "../format.js"
import { html } from "../lib.js"
import { ActionButton } from "../parts/action_button.js"
import { DataTable } from "../parts/data_table.js"
import { OperatePage } from "../parts/operate_page.js"
import { useResource } from "../parts/resource.js"
import { State } from "../parts/state.js"
import { Diff } from "../parts/tool_call.js"
import { link } from "../router.js"
import { client } from "../stores/client.js"

/** @import { Column } from "../parts/data_table.js" */
/** @import { SkillReviewShape, SkillShape } from "../rpc_types.d.ts" */

/** @param {{ title: string, items: readonly string[] }} props */
function Named({ title, items }) {
  return items.length > 0 && html`<h2>${title}</h2><ul class="plain-list">${items.map((one) => html`<li key=${one}>${showHidden(one)}</li>`)}</ul>`
}

/** @param {{ review: SkillReviewShape, reload: () => Promise<void> }} props */
function Review({ review, reload }) {
  const trust = async () => {
    await client.call("skill.trust", { name: review.name, digest: review.digest })
    await reload()
  }
  const untrust = async () => {
    await client.call("skill.untrust", { name: review.name })
    await reload()
  }
  return html`<p>${showHidden(review.description)}</p>
    <p><${State} name=${review.state} why=${review.decided_by && `decided by ${review.decided_by}`} /></p>
    <${Named} title="Look at this" items=${review.notable} />
    <${Named} title="Remarks" items=${review.remarks} />
    <${Named} title="Changed since it was trusted" items=${review.changes} />
    ${review.difference && html`<${Diff} text=${showHidden(review.difference)} />`}
    <${Named} title="Scripts" items=${review.scripts} />
    <${Named} title="Hosts that it names" items=${review.hosts} />
    <${Named} title="Tools that it is limited to" items=${review.allowed_tools ?? []} />
    <${Named} title="Files" items=${review.files} />
    <p class="hint">${review.folder}<br />${review.digest}</p>
    <div class="buttons">
      ${review.state !== "trusted" && html`<${ActionButton} label="Trust this version" kind="primary" run=${trust} />`}
      ${review.decided_by && html`<${ActionButton} label="Trust it no more" run=${untrust} />`}
    </div>`
}

/** @param {{ name: string }} props */
function SkillPage({ name }) {
  const review = useResource(() => client.call("skill.get", { name }), { on: [name] })
  return html`<${OperatePage} title=${name} resource=${review} actions=${html`<a href=${link("operate", "skills")}>All skills</a>`}>
    ${review.value && html`<${Review} review=${review.value} reload=${review.reload} />`}
  <//>`
}

/** @type {Column<SkillShape>[]} */
const COLUMNS = [
  { title: "Skill", cell: (skill) => html`<a href=${link("operate", "skills", skill.name)}>${skill.name}</a>` },
  { title: "What it does", kind: "wide", cell: (skill) => showHidden(skill.description) },
  { title: "Source", cell: (skill) => skill.source },
  { title: "State", cell: (skill) => html`<${State} name=${skill.state} />` },
]

function SkillList() {
  const skills = useResource(() => client.call("skill.list"), { every: 10_000 })
  const problems = skills.value?.problems ?? []
  return html`<${OperatePage}
    title="Skills"
    about="Instructions that the agent loads when they fit. A skill is used only in the version that somebody has trusted."
    resource=${skills}
  >
    <${DataTable}
      label="Skills"
      empty="No skills. Put one into the folder “skills”, or run “clew skills add FOLDER”."
      rows=${skills.value?.items ?? []}
      columns=${COLUMNS}
    />
    <${Named} title="Folders that are no skills" items=${problems.map((one) => `${one.folder}: ${one.reason}`)} />
  <//>`
}

/** @param {{ rest: string[] }} props */
export function Page({ rest: [name] }) {
  return name ? html`<${SkillPage} name=${name} />` : html`<${SkillList} />`
}
