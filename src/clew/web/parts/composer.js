/** Where a person writes: text, files, commands with completion. */

import { html, signal, useEffect, useLayoutEffect, useRef, useState } from "../lib.js"
import { client, commands } from "../stores/client.js"
import { showToast } from "../stores/toasts.js"
import { Icon } from "./icon.js"

/** @import { Attachment, Completion, DoubleText } from "../rpc_types.d.ts" */
/**
 * @typedef {object} ComposerProps
 * @property {string} draftKey what the draft belongs to
 * @property {boolean} isRunning
 * @property {(text: string, attachments: Attachment[], rule?: DoubleText) => void} send
 * @property {() => void} stop
 * @property {any} [footer]
 */

/** A text that another part of the page puts into the field, such as a message to edit. */
export const insertion = signal(/** @type {string | null} */ (null))
const MOST_BYTES = 8_000_000
const DRAFT_PREFIX = "clew.draft."

/**
 * @param {File} file
 * @returns {Promise<Attachment>}
 */
async function readFile(file) {
  const bytes = new Uint8Array(await file.arrayBuffer())
  let binary = ""
  for (let n = 0; n < bytes.length; n += 0x8000) {
    binary += String.fromCharCode(...bytes.subarray(n, n + 0x8000))
  }
  return { name: file.name || "picture.png", media_type: file.type || "application/octet-stream", data: btoa(binary) }
}

/**
 * Keep what is written for when the page is loaded again.
 *
 * @param {string} place
 * @param {string} text
 */
function keepDraft(place, text) {
  try {
    if (text) sessionStorage.setItem(place, text)
    else sessionStorage.removeItem(place)
  } catch {
    // Too large: it is kept as long as the page.
  }
}

/** @param {ComposerProps} props */
export function Composer({ draftKey, isRunning, send, stop, footer }) {
  const field = useRef(/** @type {HTMLTextAreaElement | null} */ (null))
  const picker = useRef(/** @type {HTMLInputElement | null} */ (null))
  const [text, setText] = useState(() => sessionStorage.getItem(DRAFT_PREFIX + draftKey) ?? "")
  const [files, setFiles] = useState(/** @type {Attachment[]} */ ([]))
  const [isOver, setOver] = useState(false)
  const completion = useCompletion(text, setText)

  useEffect(() => {
    setText(sessionStorage.getItem(DRAFT_PREFIX + draftKey) ?? "")
    setFiles([])
    if (matchMedia("(hover: hover)").matches) field.current?.focus()
  }, [draftKey])
  useEffect(() => {
    keepDraft(DRAFT_PREFIX + draftKey, text)
  }, [text])
  const inserted = insertion.value
  useEffect(() => {
    if (inserted === null) return
    insertion.value = null
    // What was written meanwhile stays, below.
    setText((/** @type {string} */ before) => (before.trim() ? `${inserted}\n\n${before}` : inserted))
    field.current?.focus()
  }, [inserted])
  useLayoutEffect(() => {
    const area = field.current
    if (!area) return
    area.style.height = "auto"
    area.style.height = `${Math.min(area.scrollHeight, innerHeight * 0.4)}px`
  }, [text])

  /** @param {Iterable<File>} given */
  const attach = async (given) => {
    // The browser empties its list once the event is over.
    for (const file of [...given]) {
      if (file.size > MOST_BYTES) {
        showToast(`${file.name} is larger than 8 MB`, { isError: true })
      } else {
        const read = await readFile(file)
        setFiles((/** @type {Attachment[]} */ before) => [...before, read])
      }
    }
  }
  /** @param {DoubleText} [rule] */
  const submit = (rule) => {
    if (!text.trim() && !files.length) return
    send(text, files, rule)
    setText("")
    setFiles([])
    completion.close()
    field.current?.focus()
  }
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    if (event.isComposing || completion.onKey(event)) return
    const isPhone = matchMedia("(hover: none)").matches
    if (event.key === "Enter" && !event.shiftKey && !event.altKey && !isPhone) {
      event.preventDefault()
      submit(isRunning && (event.ctrlKey || event.metaKey) ? "steer" : undefined)
    }
    if (event.key === "Escape" && isRunning) stop()
  }
  useLayoutEffect(() => {
    document.getElementById(`completion-${completion.at}`)?.scrollIntoView({ block: "nearest" })
  }, [completion.at])
  const hasContent = Boolean(text.trim()) || files.length > 0
  return html`<form
    class=${isOver ? "composer over" : "composer"}
    onSubmit=${(/** @type {Event} */ event) => {
      event.preventDefault()
      submit()
    }}
    onDragOver=${(/** @type {DragEvent} */ event) => {
      event.preventDefault()
      setOver(true)
    }}
    onDragLeave=${() => setOver(false)}
    onDrop=${(/** @type {DragEvent} */ event) => {
      event.preventDefault()
      setOver(false)
      attach(event.dataTransfer?.files ?? [])
    }}
  >
    ${completion.items.length > 0 &&
    html`<ul class="completions" role="listbox" id="completions" aria-label="Completions">
      ${completion.items.map(
        (one, n) => html`<li
          key=${one.text}
          id=${`completion-${n}`}
          role="option"
          aria-selected=${n === completion.at}
          onMouseDown=${(/** @type {Event} */ event) => {
            event.preventDefault()
            completion.take(n)
          }}
        >
          <span>${one.text}</span><span class="muted">${one.help}</span>
        </li>`,
      )}
    </ul>`}
    ${files.length > 0 &&
    html`<div class="attachments">
      ${files.map(
        (file, n) => html`<span class="file" key=${n}>
          ${file.media_type?.startsWith("image/") &&
          html`<img src=${`data:${file.media_type};base64,${file.data}`} alt="" />`}
          <span>${file.name}</span>
          <button
            type="button"
            class="icon-button small"
            aria-label=${`Remove ${file.name}`}
            onClick=${() => setFiles(files.filter((_, index) => index !== n))}
          >
            <${Icon} name="close" size="13" />
          </button>
        </span>`,
      )}
    </div>`}
    <textarea
      id="composer"
      ref=${field}
      rows="1"
      placeholder=${isRunning ? "Write the next message" : "Message"}
      aria-label="Message"
      aria-autocomplete="list"
      aria-controls=${completion.items.length ? "completions" : undefined}
      aria-activedescendant=${completion.items.length ? `completion-${completion.at}` : undefined}
      value=${text}
      onInput=${(/** @type {any} */ event) => setText(event.currentTarget.value)}
      onKeyDown=${onKey}
      onBlur=${() => completion.close()}
      onPaste=${(/** @type {ClipboardEvent} */ event) => {
        const pasted = [...(event.clipboardData?.files ?? [])]
        if (pasted.length) {
          event.preventDefault()
          attach(pasted)
        }
      }}
    ></textarea>
    <div class="composer-foot">
      <input
        type="file"
        multiple
        hidden
        ref=${picker}
        onChange=${(/** @type {any} */ event) => {
          attach(event.currentTarget.files)
          event.currentTarget.value = ""
        }}
      />
      <button
        type="button"
        class="icon-button"
        title="Attach files"
        aria-label="Attach files"
        onClick=${() => picker.current?.click()}
      >
        <${Icon} name="attach" />
      </button>
      <div class="composer-info">${footer}</div>
      ${isRunning &&
      hasContent &&
      html`<button
        type="button"
        class="quiet-button"
        title="Let the running turn read it now (Ctrl+Enter)"
        onClick=${() => submit("steer")}
      >
        Steer
      </button>`}
      ${isRunning && !hasContent
        ? html`<button type="button" class="send stop" title="Stop (Esc)" aria-label="Stop" onClick=${stop}>
            <${Icon} name="stop" />
          </button>`
        : html`<button
            type="submit"
            class="send"
            title=${isRunning ? "Queue (Enter)" : "Send (Enter)"}
            aria-label=${isRunning ? "Queue message" : "Send message"}
            disabled=${!hasContent}
          >
            <${Icon} name="send" />
          </button>`}
    </div>
  </form>`
}

/**
 * Completions of a command, and of what follows it.
 *
 * @param {string} text
 * @param {(text: string) => void} setText
 */
function useCompletion(text, setText) {
  const [found, setFound] = useState({ start: 0, items: /** @type {Completion[]} */ ([]) })
  const [at, setAt] = useState(0)
  const [closedAt, setClosedAt] = useState("")
  useEffect(() => {
    let isCurrent = true
    const nothing = { start: 0, items: [] }
    if (!text.startsWith("/") || text.includes("\n") || text === closedAt || client.link.value !== "up") {
      setFound(nothing)
    } else if (!text.includes(" ")) {
      const items = commands.value
        .filter((one) => one.name.startsWith(text.slice(1)))
        .map((one) => ({ text: `/${one.name}`, kind: /** @type {const} */ ("command"), help: one.help }))
      setFound({ start: 0, items: items.some((one) => one.text === text) ? [] : items })
      setAt(0)
    } else {
      client.call("complete", { text }).then(
        (told) => isCurrent && setFound({ start: told.start, items: told.items.slice(0, 8) }),
        () => isCurrent && setFound(nothing),
      )
      setAt(0)
    }
    return () => {
      isCurrent = false
    }
  }, [text, closedAt])
  const close = () => {
    setFound({ start: 0, items: [] })
    setClosedAt(text)
  }
  /** @param {number} n */
  const take = (n) => {
    const one = found.items[n]
    if (!one) return
    const made = text.slice(0, found.start) + one.text + (one.kind === "command" ? " " : "")
    setClosedAt(made)
    setText(made)
  }
  /**
   * Handle a key of the list; return whether it was one.
   *
   * @param {KeyboardEvent} event
   */
  const onKey = (event) => {
    const count = found.items.length
    if (!count) return false
    if (event.key === "Escape") close()
    else if (event.key === "ArrowDown") setAt((at + 1) % count)
    else if (event.key === "ArrowUp") setAt((at + count - 1) % count)
    else if (event.key === "Tab") take(at)
    else if (event.key === "Enter" && !event.shiftKey) take(at)
    else return false
    event.preventDefault()
    event.stopPropagation()
    return true
  }
  return { items: found.items, at, take, close, onKey }
}

