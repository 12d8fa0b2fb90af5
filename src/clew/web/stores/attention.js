/** What tells a person who looks at another tab that something came: a mark in the title, and a notice. */

import { hasNotices } from "../notices.js"

const MARK = "● "
const LONGEST = 140

/**
 * Tell a person who looks elsewhere. A browser that gets notices from the gateway shows no second one.
 *
 * @param {{ title: string, text: string, conversation: string }} told
 */
export function drawAttention({ title, text, conversation }) {
  if (!document.hidden) return
  if (!document.title.startsWith(MARK)) document.title = MARK + document.title
  if (hasNotices.value || !("Notification" in globalThis) || Notification.permission !== "granted") return
  // One for each conversation: a later one takes its place.
  const notice = new Notification(title, { body: text.slice(0, LONGEST), tag: conversation })
  notice.onclick = () => {
    window.focus()
    location.hash = `#/c/${encodeURIComponent(conversation)}`
    notice.close()
  }
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden && document.title.startsWith(MARK)) document.title = document.title.slice(MARK.length)
})
