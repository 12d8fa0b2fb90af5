/** The line above a page of the chat. */

import { html } from "../lib.js"
import { SidebarButton } from "./sidebar_button.js"

/** @param {{ title: string, children?: any }} props */
export function Header({ title, children }) {
  return html`<header class="header">
    <${SidebarButton} label="Conversations" />
    <h1 title=${title}>${title}</h1>
    ${children}
  </header>`
}
