/** The short messages at the edge of the page. */

import { html } from "../lib.js"
import { hideToast, toasts } from "../stores/toasts.js"
import { Icon } from "./icon.js"

export function Toasts() {
  return html`<div class="toasts" role="status" aria-live="polite">
    ${toasts.value.map(
      (toast) => html`<div key=${toast.id} class=${toast.isError ? "toast error" : "toast"}>
        <span>${toast.text}</span>
        ${toast.action &&
        html`<button
          type="button"
          class="quiet-button"
          onClick=${() => {
            hideToast(toast.id)
            toast.action?.run()
          }}
        >
          ${toast.action.label}
        </button>`}
        <button type="button" class="icon-button small" aria-label="Close" onClick=${() => hideToast(toast.id)}>
          <${Icon} name="close" size="14" />
        </button>
      </div>`,
    )}
  </div>`
}
