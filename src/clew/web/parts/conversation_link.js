/** A link to a conversation, if there is one. */

import { html } from "../lib.js"
import { link } from "../router.js"

/** @param {{ id: string | null | undefined, text?: string | null }} props */
export function ConversationLink({ id, text }) {
  return id ? html`<a href=${link("c", id)}>${text || "conversation"}</a>` : "—"
}
