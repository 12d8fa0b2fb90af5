/** The frame of a page for operators: its name, what can be done, and what was read. */

import { html, useEffect } from "../lib.js"
import { SidebarButton } from "./sidebar_button.js"

/** @import { Resource } from "./resource.js" */

/**
 * @param {object} props
 * @param {string} props.title
 * @param {string} [props.about] one sentence
 * @param {any} [props.actions]
 * @param {Resource<any>} [props.resource] its children are shown once it was read
 * @param {any} props.children
 */
export function OperatePage({ title, about, actions, resource, children }) {
  useEffect(() => {
    document.title = `${title} · Clew`
  }, [title])
  const isRead = !resource || resource.value !== null
  return html`<main class="page operate">
    <header class="header">
      <${SidebarButton} label="Pages" />
      <h1>${title}</h1>
      <div class="buttons">${actions}</div>
    </header>
    <div class="operate-body" tabindex="-1">
      ${about && html`<p class="about">${about}</p>`}
      ${resource?.trouble && html`<p class="error-text" role="alert">${resource.trouble}</p>`}
      ${isRead ? children : !resource?.trouble && html`<div class="loading" role="status" aria-label="Loading"></div>`}
    </div>
  </main>`
}
