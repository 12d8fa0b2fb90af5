/** The dialog over the page, with its fields. */

import { html, useEffect, useRef, useState } from "../lib.js"
import { messageOf } from "../stores/client.js"
import { question } from "../stores/dialog.js"
import { Checkbox } from "./checkbox.js"

/** @import { Field, Question } from "../stores/dialog.js" */

/** @param {{ field: Field, value: string, set: (value: string) => void }} props */
function FieldInput({ field, value, set }) {
  const id = `field-${field.name}`
  const hint = field.hint ? `${id}-hint` : undefined
  const given = {
    id,
    class: "field",
    "aria-describedby": hint,
    required: field.isRequired,
    onInput: (/** @type {any} */ event) => set(event.currentTarget.value),
  }
  if (field.kind === "check") {
    const setChecked = (/** @type {boolean} */ isChecked) => set(isChecked ? "yes" : "")
    return html`<${Checkbox} label=${field.label} isChecked=${value === "yes"} set=${setChecked} />`
  }
  return html`<div class="dialog-field">
    <label for=${id}>${field.label}</label>
    ${field.choices
      ? html`<select ...${given} value=${value}>
          ${field.choices.map((one) => html`<option value=${one} key=${one}>${one || "—"}</option>`)}
        </select>`
      : field.kind === "area"
        ? html`<textarea ...${given} rows="4" value=${value}></textarea>`
        : html`<input ...${given} type=${field.kind ?? "text"} value=${value} />`}
    ${field.hint && html`<p class="hint" id=${hint}>${field.hint}</p>`}
  </div>`
}

/** @param {{ asked: Question }} props */
function Dialog({ asked }) {
  const box = useRef(/** @type {HTMLDialogElement | null} */ (null))
  const fields = asked.fields ?? []
  const [given, setGiven] = useState(Object.fromEntries(fields.map((one) => [one.name, one.value ?? ""])))
  const [trouble, setTrouble] = useState("")
  const [isSent, setSent] = useState(false)
  useEffect(() => {
    box.current?.showModal()
    const first = /** @type {HTMLElement | null | undefined} */ (box.current?.querySelector("input, textarea, select"))
    first?.focus()
  }, [])
  const close = () => {
    if (question.value === asked) question.value = null
  }
  /** @param {Event} event */
  const submit = async (event) => {
    event.preventDefault()
    setSent(true)
    try {
      await asked.run(given)
      box.current?.close()
    } catch (error) {
      setTrouble(messageOf(error))
      setSent(false)
    }
  }
  return html`<dialog ref=${box} class="dialog" aria-labelledby="dialog-title" onClose=${close}>
    <form onSubmit=${submit}>
      <h2 id="dialog-title">${asked.title}</h2>
      ${asked.text && html`<p>${asked.text}</p>`}
      ${fields.map(
        (field) => html`<${FieldInput}
          key=${field.name}
          field=${field}
          value=${given[field.name] ?? ""}
          set=${(/** @type {string} */ value) => setGiven({ ...given, [field.name]: value })}
        />`,
      )}
      ${trouble && html`<p class="error-text" role="alert">${trouble}</p>`}
      <div class="buttons">
        <button type="submit" class=${asked.isDangerous ? "danger" : "primary"} disabled=${isSent}>${asked.confirm}</button>
        <button type="button" onClick=${() => box.current?.close()}>Cancel</button>
      </div>
    </form>
  </dialog>`
}

/** The dialog that is open, if any. */
export function Dialogs() {
  return question.value && html`<${Dialog} asked=${question.value} />`
}
