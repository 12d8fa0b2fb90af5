/** The log of the gateway as it grows: by level, by words, and at rest while it is read. */

import { showHidden } from "../format.js"
import { html, useEffect, useRef, useState } from "../lib.js"
import { Choice } from "../parts/choice.js"
import { OperatePage } from "../parts/operate_page.js"
import { SearchField } from "../parts/search_field.js"
import { State } from "../parts/state.js"
import { client, messageOf } from "../stores/client.js"

/** @import { LogRecordShape } from "../rpc_types.d.ts" */
/** @typedef {"info" | "warning" | "error"} Level */

const LEVELS = [["info", "Everything"], ["warning", "Warnings and errors"], ["error", "Errors"]]
const PAUSE = 2000
/** Records that the page keeps. */
const MOST = 2000
/** Pixels from the end at which new records are followed. */
const NEAR = 60

/**
 * The records of the log from the newest thousand on; new ones join until `isPaused`.
 *
 * @param {Level} level
 * @param {boolean} isPaused
 */
function useTail(level, isPaused) {
  const [records, setRecords] = useState(/** @type {LogRecordShape[] | null} */ (null))
  const [trouble, setTrouble] = useState("")
  const last = useRef({ level, number: 0 })
  useEffect(() => {
    if (isPaused) return
    let isLeft = false
    if (last.current.level !== level) last.current = { level, number: 0 }
    const read = async () => {
      if (document.hidden || client.link.value !== "up") return
      const after = last.current.number
      try {
        const found = await client.call("log.tail", { after, level, limit: 1000 })
        if (isLeft) return
        setTrouble("")
        // After a restart the numbers begin again.
        const isNew = found.last < after
        last.current.number = isNew ? 0 : found.last
        if (isNew || !after || found.items.length) {
          setRecords((before) => (after && !isNew ? [...(before ?? []), ...found.items].slice(-MOST) : found.items))
        }
      } catch (error) {
        if (!isLeft) setTrouble(messageOf(error))
      }
    }
    read()
    const timer = setInterval(read, PAUSE)
    return () => {
      isLeft = true
      clearInterval(timer)
    }
  }, [level, isPaused, client.link.value])
  return { records, trouble }
}

/** @param {string} at */
const clockOf = (at) => new Date(at).toLocaleTimeString([], { hour12: false })

/** @param {{ record: LogRecordShape }} props */
function Line({ record }) {
  const { at, level, event, detail } = record
  return html`<li class=${`log-line ${level}`}>
    <time datetime=${at} title=${at}>${clockOf(at)}</time>
    ${level === "info" ? html`<span class="log-level">info</span>` : html`<span class="log-level"><${State} name=${level} /></span>`}
    <span class="log-text"><strong>${showHidden(event)}</strong> ${showHidden(detail)}</span>
  </li>`
}

export function Page() {
  const [level, setLevel] = useState(/** @type {Level} */ ("info"))
  const [isPaused, setPaused] = useState(false)
  const [sought, setSought] = useState("")
  const { records, trouble } = useTail(level, isPaused)
  const box = useRef(/** @type {HTMLElement | null} */ (null))
  const follows = useRef(true)
  const words = sought.trim().toLowerCase()
  const shown = (records ?? []).filter((one) => `${one.event} ${one.detail}`.toLowerCase().includes(words))
  useEffect(() => {
    if (follows.current) box.current?.scrollTo(0, box.current.scrollHeight)
  }, [shown.length, records])
  const noteScroll = (/** @type {any} */ event) => {
    const { scrollHeight, scrollTop, clientHeight } = event.currentTarget
    follows.current = scrollHeight - scrollTop - clientHeight < NEAR
  }
  return html`<${OperatePage}
    title="Log"
    about="What this gateway has logged since it was started, at most the last 2,000 records. Secrets are removed."
    actions=${html`<button type="button" aria-pressed=${isPaused} onClick=${() => setPaused(!isPaused)}>${isPaused ? "Go on" : "Pause"}</button>`}
  >
    <div class="toolbar">
      <${Choice} label="Level" kind="labelled" choices=${LEVELS} value=${level} set=${setLevel} />
      <${SearchField} label="Search in what is shown" value=${sought} set=${setSought} />
    </div>
    ${trouble && html`<p class="error-text" role="alert">${trouble}</p>`}
    <p class="hint" role="status">${isPaused ? "Paused. " : ""}${words && records ? `${shown.length} of ${records.length} records` : ""}</p>
    ${records && !shown.length
      ? html`<p class="empty">${records.length ? "No record has these words." : "Nothing was logged at this level."}</p>`
      : html`<ol class="log" ref=${box} tabindex="0" aria-label="Records of the log" onScroll=${noteScroll}>
          ${shown.map((one) => html`<${Line} key=${one.number} record=${one} />`)}
        </ol>`}
  <//>`
}
