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
/** Whether an answer has been waited for so long that a person wants to know. */
export const isLoading = signal(false)
/** Why no messages are found. */
export const searchTrouble = signal("")
const next = signal(/** @type {string | null} */ (null))
const nextHits = signal(/** @type {string | null} */ (null))
const NOTHING = { items: /** @type {HitShape[]} */ ([]), next: /** @type {string | null} */ (null) }
const LEAST_LETTERS = 3
const FIRST_HITS = 8
const MORE_HITS = 24
/** Milliseconds after which it is tried again to search messages. */
const RETRY_AFTER = 3000
/** Milliseconds of waiting that nobody is told of. */
const PATIENCE = 300
const PAGE_SIZE = 50
const MOST = 200
/** Counts the answers that were asked for. */
let lastLoad = 0
/** @type {Promise<void> | null} */
let loading = null
let isAskedAgain = false
let retryTimer = 0

export const hasMore = next
export const hasMoreHits = nextHits

/** Load the first page again; who asks while it loads gets what is asked for by then. */
export function reload() {
  isAskedAgain = loading !== null
  loading ??= loadUntilCurrent().finally(() => {
    loading = null
    isLoading.value = false
  })
  return loading
}

/** One request at a time: letters that come while an answer is waited for are asked for together. */
async function loadUntilCurrent() {
  const timer = setTimeout(() => {
    isLoading.value = true
  }, PATIENCE)
  do {
    isAskedAgain = false
    await load()
  } while (isAskedAgain)
  clearTimeout(timer)
  clearTimeout(retryTimer)
  if (searchTrouble.value) retryTimer = setTimeout(reload, RETRY_AFTER)
}

async function load() {
  lastLoad += 1
  const wanted = query.value.trim()
  const narrowed = readFilters()
  // What was loaded by further pages stays.
  const limit = Math.min(Math.max(PAGE_SIZE, conversations.value.length), MOST)
  try {
    const [page] = await Promise.all([
      client.call("conversation.list", { query: wanted, limit, ...narrowed }),
      searchMessages(wanted, narrowed),
    ])
    if (isAskedAgain) return
    conversations.value = page.items
    next.value = page.next
    isListed.value = true
  } catch (error) {
    if (!isAskedAgain) showToast(messageOf(error), { isError: true })
  }
}

/**
 * Search messages beside titles. That it cannot be done for now, such as while the index is built, is
 * told where the messages would be.
 *
 * @param {string} wanted
 * @param {ReturnType<typeof readFilters>} narrowed
 */
async function searchMessages(wanted, { scope, channel, since, until }) {
  // Messages are found by their person; a channel or a time narrows only the list.
  const isSearched = wanted.length >= LEAST_LETTERS && !channel && !since && !until
  let found = NOTHING
  let trouble = ""
  try {
    if (isSearched) found = await client.call("conversation.search", { query: wanted, scope, limit: FIRST_HITS })
  } catch (error) {
    trouble = messageOf(error)
  }
  if (isAskedAgain) return
  hits.value = found.items
  nextHits.value = found.next
  searchTrouble.value = trouble
}

/** Load more messages that were found. */
export const loadMoreHits = () =>
  attempt(async () => {
    if (!nextHits.value) return
    const load = lastLoad
    const { scope } = readFilters()
    const given = { query: query.value.trim(), scope, limit: MORE_HITS, cursor: nextHits.value }
    const found = await client.call("conversation.search", given)
    if (load !== lastLoad) return
    hits.value = [...hits.value, ...found.items]
    nextHits.value = found.next
  })

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
