/** A button that opens a list of actions. */

import { html, useEffect, useRef, useState } from "../lib.js"
import { Icon } from "./icon.js"

/** @typedef {{ label: string, icon?: string, run: () => void, isDangerous?: boolean }} MenuItem */

/** @param {{ label: string, items: MenuItem[], icon?: string, text?: string }} props */
export function Menu({ label, items, icon = "more", text }) {
  const [isOpen, setOpen] = useState(false)
  const box = useRef(/** @type {HTMLElement | null} */ (null))
  useEffect(() => {
    if (!isOpen) return
    const buttons = () => [...(box.current?.querySelectorAll("[role=menuitem]") ?? [])]
    const first = /** @type {HTMLElement | undefined} */ (buttons()[0])
    first?.focus()
    /** @param {Event} event */
    const leave = (event) => {
      if (!box.current?.contains(/** @type {Node} */ (event.target))) setOpen(false)
    }
    addEventListener("pointerdown", leave)
    return () => removeEventListener("pointerdown", leave)
  }, [isOpen])
  const close = () => {
    setOpen(false)
    box.current?.querySelector("button")?.focus()
  }
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    if (!isOpen) return
    if (event.key === "Escape") {
      event.stopPropagation()
      close()
    }
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0
    if (!step) return
    event.preventDefault()
    const buttons = /** @type {HTMLElement[]} */ ([...(box.current?.querySelectorAll("[role=menuitem]") ?? [])])
    const at = buttons.indexOf(/** @type {HTMLElement} */ (document.activeElement))
    buttons[(at + step + buttons.length) % buttons.length]?.focus()
  }
  return html`<div class="menu" ref=${box} onKeyDown=${onKey}>
    <button
      type="button"
      class=${text ? "quiet-button" : "icon-button"}
      aria-label=${label}
      title=${label}
      aria-haspopup="menu"
      aria-expanded=${isOpen}
      onClick=${() => setOpen(!isOpen)}
    >
      ${text ?? html`<${Icon} name=${icon} />`}
    </button>
    ${isOpen &&
    html`<div class="menu-list" role="menu" aria-label=${label}>
      ${items.map(
        (item) => html`<button
          type="button"
          role="menuitem"
          key=${item.label}
          class=${item.isDangerous ? "dangerous" : ""}
          onClick=${() => {
            close()
            item.run()
          }}
        >
          ${item.icon && html`<${Icon} name=${item.icon} size="16" />`}<span>${item.label}</span>
        </button>`,
      )}
    </div>`}
  </div>`
}
