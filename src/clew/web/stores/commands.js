/** Chat commands that a person sends. */

import { signal } from "../lib.js"
import { go } from "../router.js"
import { client } from "./client.js"
import { reload } from "./conversations.js"
import { attempt } from "./toasts.js"

/** Replies of commands, which no log keeps, by conversation. */
export const replies = signal(/** @type {Array<{ conversation: string, text: string }>} */ ([]))

/**
 * Run a chat command; it may lead to another conversation.
 *
 * @param {string} conversation
 * @param {string} text
 */
export const runCommand = (conversation, text) =>
  attempt(async () => {
    const reply = await client.call("commands.run", { conversation, text })
    const place = reply.conversation ?? conversation
    if (reply.text) replies.value = [...replies.value, { conversation: place, text: reply.text }]
    if (reply.conversation && reply.conversation !== conversation) go("c", reply.conversation)
    reload()
  })
