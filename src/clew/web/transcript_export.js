/** A conversation as a Markdown file. */

import { client } from "./stores/client.js"

const PAGE_SIZE = 500

/**
 * @param {string} conversation
 * @param {string} title
 */
export async function exportMarkdown(conversation, title) {
  const lines = [`# ${title}`]
  for (let after = 0; ; ) {
    const page = await client.call("conversation.entries", { conversation, after, limit: PAGE_SIZE })
    for (const entry of page.items) {
      if (entry.kind !== "message" || !entry.text || entry.role === "tool") continue
      lines.push(`## ${entry.role === "user" ? "You" : "Agent"}`, entry.text)
    }
    if (!page.next) break
    after = Number(page.next)
  }
  const url = URL.createObjectURL(new Blob([`${lines.join("\n\n")}\n`], { type: "text/markdown" }))
  const link = document.createElement("a")
  link.href = url
  link.download = `${title.replaceAll(/[^\p{L}\p{N} _-]/gu, "").trim() || "conversation"}.md`
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 1000)
}
