/** One setting in a form: its value, what it does, where it comes from, and what is wrong with it. */

import { html, useEffect, useState } from "../lib.js"
import { replace } from "../router.js"
import { client, messageOf } from "../stores/client.js"
import { InlineCode } from "./inline_code.js"

/** @import { SettingInfoShape } from "../rpc_types.d.ts" */

/** Types that are tables of their own in the file. */
const ONLY_IN_FILE = new Set(["list of rules", "table of secrets"])
const NUMBERS = new Set(["whole number", "share"])
const SOURCES = { default: "the default", file: "from", environment: "from the environment variable", flag: "from the flag" }

/**
 * The text of a field for a value.
 *
 * @param {SettingInfoShape} setting
 */
function textOf({ secret, next: value, is_list: isList }) {
  if (secret || value === null || value === undefined) return ""
  if (isList && Array.isArray(value)) return value.join("\n")
  return typeof value === "object" ? JSON.stringify(value) : String(value)
}

/**
 * The value for the text of a field; nothing written is nothing set.
 *
 * @param {SettingInfoShape} setting
 * @param {string} text
 */
function valueOf({ type, secret, is_list: isList, next: value }, text) {
  const reference = secret && /^\s*\{\s*(env|file)\s*=\s*"([^"]+)"\s*\}\s*$/.exec(text)
  if (reference) return { [reference[1] ?? ""]: reference[2] }
  if (isList) {
    return text
      .split("\n")
      .map((line) => line.trim())
      .filter(Boolean)
  }
  if (!text.trim()) return null
  if (type === "flag") return text === "true"
  const number = Number(text)
  const isNumber = NUMBERS.has(type) || (type === "any" && typeof value === "number")
  if (isNumber && !Number.isNaN(number)) return number
  if (type === "any" && typeof value === "boolean") return text === "true"
  return text
}

/** @param {{ setting: SettingInfoShape, text: string, set: (text: string) => void, given: Record<string, unknown> }} props */
function SettingInput({ setting, text, set, given }) {
  const onInput = (/** @type {any} */ event) => set(event.currentTarget.value)
  if (setting.type === "flag") {
    return html`<select class="field" ...${given} value=${text} onChange=${onInput}>
      <option value="true">on</option>
      <option value="false">off</option>
    </select>`
  }
  if (setting.choices) {
    return html`<select class="field" ...${given} value=${text} onChange=${onInput}>
      ${!setting.choices.includes(text) && html`<option value=${text}>—</option>`}
      ${setting.choices.map((one) => html`<option value=${one} key=${one}>${one}</option>`)}
    </select>`
  }
  if (setting.is_list) {
    return html`<textarea class="field" ...${given} rows=${Math.min(6, text.split("\n").length + 1)} value=${text} onInput=${onInput}></textarea>`
  }
  if (setting.secret) {
    return html`<input class="field" ...${given} type="password" autocomplete="off" placeholder=${setting.next} value=${text} onInput=${onInput} />`
  }
  const shownDefault = setting.default === null ? "" : String(setting.default)
  return html`<input
    class="field"
    ...${given}
    type="text"
    inputmode=${NUMBERS.has(setting.type) ? "decimal" : undefined}
    placeholder=${shownDefault}
    value=${text}
    onInput=${onInput}
  />`
}

/** @param {unknown} value */
const showValue = (value) => (value === null ? "not set" : typeof value === "string" ? value : JSON.stringify(value))

/** @param {{ setting: SettingInfoShape }} props */
function Origin({ setting }) {
  const source = SOURCES[/** @type {keyof typeof SOURCES} */ (setting.source)] ?? setting.source
  const isOwn = setting.source === "default" && setting.place === "default"
  return html`<span>${isOwn ? source : `${source} `}${!isOwn && html`<span class="place">${setting.place}</span>`}</span>`
}

/** @param {{ setting: SettingInfoShape }} props */
function DefaultNote({ setting }) {
  const { default: value, default_note: note, expects } = setting
  const told = note ?? (value === null || value === undefined ? "" : JSON.stringify(value))
  return html`<p class="hint">
    ${expects && html`<${InlineCode} text=${`${expects[0]?.toUpperCase()}${expects.slice(1)}.`} /> `}
    ${told && html`Default: <${InlineCode} text=${told} />.`}
    ${setting.is_list && " One in each line."}
  </p>`
}

/** @param {{ setting: SettingInfoShape, reload: () => Promise<void>, name?: string }} props */
export function SettingField({ setting, reload, name = setting.name }) {
  const stored = textOf(setting)
  const [text, setText] = useState(stored)
  const [trouble, setTrouble] = useState("")
  const [note, setNote] = useState("")
  const [isSent, setSent] = useState(false)
  useEffect(() => setText(stored), [stored])
  const id = `setting-${setting.name}`
  const isChanged = text !== stored
  /** @param {unknown} value */
  const save = async (value) => {
    setSent(true)
    try {
      const done = await client.call("setting.set", { name, value })
      setTrouble("")
      setNote(done.note)
      if (setting.secret) setText("")
      await reload()
    } catch (error) {
      setNote("")
      setTrouble(messageOf(error))
    }
    setSent(false)
  }
  const isFixed = ONLY_IN_FILE.has(setting.type)
  const given = {
    id,
    "aria-describedby": trouble ? `${id}-trouble ${id}-help` : `${id}-help`,
    "aria-invalid": trouble ? "true" : undefined,
  }
  return html`<form
    class="setting"
    onSubmit=${(/** @type {Event} */ event) => {
      event.preventDefault()
      if (isChanged) save(valueOf(setting, text))
    }}
  >
    <div class="setting-head">
      ${isFixed ? html`<span class="setting-name">${setting.name}</span>` : html`<label class="setting-name" for=${id}>${setting.name}</label>`}
      ${setting.pending
        ? html`<span class="state bad">waits for a restart</span>`
        : setting.restart && !isFixed && html`<span class="state">needs a restart</span>`}
    </div>
    <p class="setting-help" id=${`${id}-help`}><${InlineCode} text=${setting.help} /></p>
    ${isFixed
      ? html`<p class="hint">
          ${setting.secret ? setting.value : html`<code>${JSON.stringify(setting.value)}</code>`}. It has several parts: edit it in config.toml.
        </p>`
      : html`<div class="setting-value">
          <${SettingInput} setting=${setting} text=${text} set=${setText} given=${given} />
          <div class="buttons">
            ${isChanged &&
            html`<button type="submit" class="primary" disabled=${isSent} aria-label=${`Save ${name}`}>Save</button>
              <button type="button" aria-label=${`Discard the change of ${name}`} onClick=${() => setText(stored)}>Discard</button>`}
            ${!isChanged &&
            setting.in_file &&
            html`<button type="button" disabled=${isSent} aria-label=${`${setting.secret ? "Remove" : "Use the default of"} ${name}`} onClick=${() => save(null)}>
              ${setting.secret ? "Remove" : "Use the default"}
            </button>`}
          </div>
        </div>`}
    ${trouble && html`<p class="error-text" id=${`${id}-trouble`} role="alert">${trouble}</p>`}
    ${note && html`<p class="hint" role="status">${note}.</p>`}
    ${!isFixed && html`<${DefaultNote} setting=${setting} />`}
    <p class="hint">Now ${(setting.secret || setting.pending) && `${showValue(setting.value)}, `}<${Origin} setting=${setting} /></p>
  </form>`
}

/**
 * The fields of a table that does not exist yet; what is saved first makes it.
 *
 * @param {{ section: string, items: SettingInfoShape[], reload: () => Promise<void> }} props
 */
export function NewTable({ section, items, reload }) {
  const [name, setName] = useState("")
  const table = section.replace(/\.NAME$/, "")
  const isGood = /^[A-Za-z0-9_-]+$/.test(name)
  const show = async () => {
    await reload()
    replace("operate", "settings", `${table}.${name}`)
  }
  return html`<div class="setting">
      <label class="setting-name" for="new-table">Name of the new table in ${table}</label>
      <input
        class="field"
        id="new-table"
        value=${name}
        aria-describedby="new-table-hint"
        onInput=${(/** @type {any} */ event) => setName(event.currentTarget.value)}
      />
      <p class="hint" id="new-table-hint">Letters, digits, - and _: for example, ${table === "channels" ? "telegram" : "anthropic"}.</p>
    </div>
    ${isGood &&
    items.map((one) => html`<${SettingField} key=${one.name} setting=${one} name=${one.name.replace(".NAME.", `.${name}.`)} reload=${show} />`)}`
}
