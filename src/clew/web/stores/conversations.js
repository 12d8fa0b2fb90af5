/** The list of conversations, with what is searched for. */

import { signal } from "../lib.js"
import { client, messageOf } from "./client.js"
import { openDialog } from "./dialog.js"
import { readFilters } from "./filters.js"
import { attempt, showToast } from "./toasts.js"

/** @import { ConversationShape, HitShape } from "../rpc_types.d.ts" */

export const query = signal("")
export const conversations = signal(/** @type {ConversationShape[]} */ ([]))
/** Messages with the words that are searched for. */
export const hits = signal(/** @type {HitShape[]} */ ([]))
export const isListed = signal(false)
const next = signal(/** @type {string | null} */ (null))
const LEAST_LETTERS = 3
const PAGE_SIZE = 50
const MOST = 200
let lastLoad = 0

export const hasMore = next

/** Load the first page again. */
export async function reload() {
  const load = ++lastLoad
  const wanted = query.value.trim()
  const narrowed = readFilters()
  // What was loaded by further pages stays.
  const limit = Math.min(Math.max(PAGE_SIZE, conversations.value.length), MOST)
  const listing = client.call("conversation.list", { query: wanted, limit, ...narrowed })
  const { scope, channel, since, until } = narrowed
  // Messages are found by their person; a channel or a time narrows only the list.
  const isSearched = wanted.length >= LEAST_LETTERS && !channel && !since && !until
  const searching = isSearched ? client.call("conversation.search", { query: wanted, scope, limit: 8 }) : null
  try {
    const [page, found] = await Promise.all([listing, searching])
    if (load !== lastLoad) return
    conversations.value = page.items
    next.value = page.next
    hits.value = found?.items ?? []
    isListed.value = true
  } catch (error) {
    if (load === lastLoad) showToast(messageOf(error), { isError: true })
  }
}

/** Load one more page. */
export const loadMore = () =>
  attempt(async () => {
    if (!next.value) return
    const load = lastLoad
    const page = await client.call("conversation.list", {
      query: query.value.trim(),
      cursor: next.value,
      ...readFilters(),
    })
    if (load !== lastLoad) return
    const known = new Set(conversations.value.map((one) => one.id))
    conversations.value = [...conversations.value, ...page.items.filter((one) => !known.has(one.id))]
    next.value = page.next
  })

let timer = 0

/**
 * Search as a person types.
 *
 * @param {string} text
 */
export function search(text) {
  query.value = text
  clearTimeout(timer)
  timer = setTimeout(reload, 150)
}

/**
 * Delete a conversation; the message about it has the way back.
 *
 * @param {ConversationShape} conversation
 */
export const remove = (conversation) =>
  attempt(async () => {
    await client.call("conversation.delete", { conversation: conversation.id })
    showToast(`Deleted “${conversation.title ?? "Untitled"}”`, {
      action: { label: "Undo", run: () => restore(conversation.id) },
    })
    await reload()
  })

/** @param {string} id */
const restore = (id) =>
  attempt(async () => {
    await client.call("conversation.undelete", { conversation: id })
    await reload()
  })

/**
 * Ask a person for the title of a conversation.
 *
 * @param {string} id
 * @param {string} title as it is
 */
export function askForTitle(id, title) {
  openDialog({
    title: "Rename the conversation",
    fields: [{ name: "title", label: "Title", value: title }],
    confirm: "Rename",
    run: async (given) => {
      await client.call("conversation.rename", { conversation: id, title: given.title?.trim() || null })
      await reload()
    },
  })
}
