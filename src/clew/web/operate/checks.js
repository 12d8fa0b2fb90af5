/** Checks of what is stored, with repairs, and of the installation. */

import { formatNoun as count, showHidden } from "../format.js"
import { html, useState } from "../lib.js"
import { Checkbox } from "../parts/checkbox.js"
import { ConversationLink } from "../parts/conversation_link.js"
import { DataTable } from "../parts/data_table.js"
import { OperatePage } from "../parts/operate_page.js"
import { State } from "../parts/state.js"
import { client, messageOf } from "../stores/client.js"
import { openDialog } from "../stores/dialog.js"

/** @import { DoctorFindingShape, DoctorReportShape, StoreFindingShape, StoreReportShape } from "../rpc_types.d.ts" */
/** @import { Column } from "../parts/data_table.js" */

/** @type {Column<StoreFindingShape>[]} */
const STORE_COLUMNS = [
  { title: "Check", cell: (one) => one.check },
  {
    title: "Place",
    cell: (one) =>
      one.conversation
        ? html`<span class="unbroken"><${ConversationLink} id=${one.conversation} /></span>${one.seq !== null && `, entry ${one.seq}`}`
        : "the store",
  },
  { title: "Finding", kind: "wide", cell: (one) => showHidden(one.detail) },
  {
    title: "What to do",
    kind: "wide",
    cell: (one) =>
      one.repaired
        ? html`<${State} name="done" why=${one.repair} />`
        : one.repair
          ? html`Repair: ${one.repair}`
          : html`Decide: ${one.decide}`,
  },
]

/**
 * A finding; the lines behind its first one are folded.
 *
 * @param {{ text: string }} props
 */
function Detail({ text }) {
  const [first, ...rest] = text.split("\n")
  if (!rest.length) return first
  return html`<details class="folded">
    <summary>${first}</summary>
    <div class="lines">${rest.join("\n")}</div>
  </details>`
}

/** @type {Column<DoctorFindingShape>[]} */
const DOCTOR_COLUMNS = [
  { title: "State", cell: (one) => html`<${State} name=${one.level} />` },
  { title: "What", cell: (one) => one.what },
  {
    title: "Finding",
    kind: "wide",
    cell: (one) => html`<${Detail} text=${showHidden(one.detail)} />${one.fix && html`<div class="hint">To do: ${one.fix}</div>`}`,
  },
]

/** @param {StoreReportShape} report */
function summarize({ clean, checked, findings, unchecked }) {
  const looked = `${count(checked.entry, "entry", "entries")} in ${count(checked.conversation, "conversation")}, ${checked.checks ?? 0} checks`
  const repaired = findings.filter((one) => one.repaired).length
  const left = findings.length - repaired
  const parts = [looked]
  if (repaired) parts.push(`${repaired} repaired`)
  if (left) parts.push(`${left} found`)
  if (unchecked.length) parts.push(`not checked: ${unchecked.join(", ")}`)
  return `${parts.join("; ")}${clean ? ": no problems" : ""}.`
}

/**
 * Work that takes a while, its result, and why it failed.
 *
 * @template T
 */
function useWork() {
  const [state, setState] = useState({ result: /** @type {T | null} */ (null), trouble: "", isRunning: false })
  /** @param {() => Promise<T>} work */
  const run = async (work) => {
    setState({ ...state, trouble: "", isRunning: true })
    try {
      setState({ result: await work(), trouble: "", isRunning: false })
    } catch (error) {
      setState({ ...state, trouble: messageOf(error), isRunning: false })
      throw error
    }
  }
  return { ...state, run }
}

function StoreCheck() {
  const work = /** @type {ReturnType<typeof useWork<StoreReportShape>>} */ (useWork())
  const { result, trouble, isRunning } = work
  const repairable = result?.findings.filter((one) => one.repair && !one.repaired).length ?? 0
  const repair = () =>
    openDialog({
      title: repairable === 1 ? "Repair one finding?" : `Repair ${repairable} findings?`,
      text: "Only what is certainly right is changed, and checked again before. Make a backup first if you are not sure.",
      confirm: "Repair",
      run: () => work.run(() => client.call("check.repair")),
    })
  return html`<section aria-labelledby="store-check">
    <h2 id="store-check">Store</h2>
    <p class="about">Reads everything that is stored and checks it: numbers, hashes, sessions, turns, deliveries, search. Nothing is changed.</p>
    <div class="buttons">
      <button type="button" class="primary" disabled=${isRunning} onClick=${() => work.run(() => client.call("check.run")).catch(() => {})}>
        Check the store
      </button>
      ${repairable > 0 && html`<button type="button" disabled=${isRunning} onClick=${repair}>Repair what is certain</button>`}
    </div>
    <p role="status">${isRunning ? "Checking. A large store takes minutes." : result && summarize(result)}</p>
    ${trouble && html`<p class="error-text" role="alert">${trouble}</p>`}
    ${result &&
    result.findings.length > 0 &&
    html`<${DataTable}
      label="Findings in the store"
      empty=""
      rows=${result.findings}
      columns=${STORE_COLUMNS}
      keyOf=${(/** @type {StoreFindingShape} */ one) => `${one.check} ${one.conversation} ${one.seq} ${one.detail}`}
    />`}
  </section>`
}

function Doctor() {
  const work = /** @type {ReturnType<typeof useWork<DoctorReportShape>>} */ (useWork())
  const { result, trouble, isRunning } = work
  const [asksModels, setAsksModels] = useState(true)
  const failed = result?.findings.filter((one) => one.level === "fail").length ?? 0
  const warned = result?.findings.filter((one) => one.level === "warn").length ?? 0
  const told = failed || warned ? `${failed} to fix, ${warned} to look at.` : "No problems."
  return html`<section aria-labelledby="doctor">
    <h2 id="doctor">Installation</h2>
    <p class="about">Looks at settings, files, disk, sandbox, channels, store and models, and says what to do.</p>
    <div class="toolbar">
      <button
        type="button"
        class="primary"
        disabled=${isRunning}
        onClick=${() => work.run(() => client.call("doctor.run", { offline: !asksModels })).catch(() => {})}
      >
        Run the doctor
      </button>
      <${Checkbox} label="Send a test request to each model" isChecked=${asksModels} set=${setAsksModels} />
    </div>
    <p role="status">${isRunning ? "Looking." : result && told}</p>
    ${trouble && html`<p class="error-text" role="alert">${trouble}</p>`}
    ${result &&
    html`<${DataTable}
      label="Findings of the doctor"
      empty="Nothing was looked at."
      rows=${result.findings}
      columns=${DOCTOR_COLUMNS}
      keyOf=${(/** @type {DoctorFindingShape} */ one) => `${one.what} ${one.detail}`}
    />`}
  </section>`
}

export function Page() {
  return html`<${OperatePage} title="Checks"><${StoreCheck} /><${Doctor} /><//>`
}
