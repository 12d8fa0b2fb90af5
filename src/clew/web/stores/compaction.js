/** Summarising older messages, with a look at what becomes of them, and the way back. */

import { formatCount, formatNoun } from "../format.js"
import { client } from "./client.js"
import { openDialog } from "./dialog.js"
import { attempt, showToast } from "./toasts.js"

/** @import { ConversationStore } from "./conversation.js" */

/**
 * Show what would be summarised; a person says whether it is.
 *
 * @param {ConversationStore} store
 */
export async function askToCompact(store) {
  const preview = await client.call("session.compact", { session_id: store.id, dry_run: true })
  const goes = preview.goes ?? []
  const stays = preview.stays ?? []
  if (!goes.length) return showToast("There is nothing to summarise yet")
  const [before, after] = [preview.tokens_before, preview.tokens_after].map(formatCount)
  openDialog({
    title: "Summarise older messages",
    text:
      `The model would read a summary in place of ${formatNoun(goes.length, "message")}; ${formatNoun(stays.length, "message")} stay as they are. ` +
      `${before} tokens become ${after} and the summary. Everything stays readable here, and it can be undone.`,
    fields: [{ name: "focus", label: "What matters most", hint: "May be empty" }],
    confirm: "Summarise",
    run: async ({ focus }) => {
      const done = await client.call("session.compact", { session_id: store.id, focus: focus?.trim() || null })
      if (!done.moved) throw new Error(done.note || "Nothing was summarised")
      await store.refreshUsage()
    },
  })
}

/**
 * Let the model read again what was summarised last.
 *
 * @param {ConversationStore} store
 */
export const undoCompaction = (store) =>
  attempt(async () => {
    await client.call("session.compact", { session_id: store.id, undo: true })
    await store.refreshUsage()
  })
