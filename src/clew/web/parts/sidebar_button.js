/** The button that opens the list at the side, where it lies over the page. */

import { html, signal } from "../lib.js"
import { Icon } from "./icon.js"

/** Whether the list is open where it lies over the page. */
export const isSidebarOpen = signal(false)

/** @param {{ label: string }} props */
export function SidebarButton({ label }) {
  return html`<button
    type="button"
    class="icon-button only-narrow"
    aria-label=${label}
    aria-expanded=${isSidebarOpen.value}
    onClick=${() => {
      isSidebarOpen.value = !isSidebarOpen.value
    }}
  >
    <${Icon} name="menu" />
  </button>`
}
