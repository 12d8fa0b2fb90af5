/** What the list of conversations is narrowed to: a person, a channel, a time. */

import { computed, signal } from "../lib.js"
import { describeScope } from "../scopes.js"
import { client } from "./client.js"

/** @typedef {{ scope: string, channel: string, from: string, to: string }} Filters dates are those of this browser */

const NOTHING = { scope: "", channel: "", from: "", to: "" }

export const filters = signal(/** @type {Filters} */ (NOTHING))
export const isFiltered = computed(() => Object.values(filters.value).some(Boolean))
/** The people and chats that have conversations, with their names. */
export const people = signal(/** @type {Array<{ scope: string, name: string }>} */ ([]))
export const channels = signal(/** @type {Array<{ channel: string, name: string }>} */ ([]))

export function clearFilters() {
  filters.value = NOTHING
}

/** The filters as the gateway takes them. */
export function readFilters() {
  const { scope, channel, from, to } = filters.value
  return { scope, channel, since: from ? startOfDay(from, 0) : "", until: to ? startOfDay(to, 1) : "" }
}

/**
 * @param {string} day such as 2026-01-31
 * @param {number} later days
 */
function startOfDay(day, later) {
  const [year = 0, month = 1, date = 1] = day.split("-").map(Number)
  const moment = new Date(year, month - 1, date + later)
  return Number.isNaN(moment.getTime()) ? "" : moment.toISOString()
}

/** Read who has conversations; names are known to those who may see them. */
export async function loadPeople() {
  const [found, known] = await Promise.all([
    client.call("conversation.scopes"),
    client.call("person.list").catch(() => ({ items: [] })),
  ])
  const described = found.items.map((one) => ({ scope: one.scope, ...describeScope(one.scope, known.items) }))
  people.value = described.map(({ scope, name }) => ({ scope, name }))
  const all = new Map(described.map(({ channel, channelName }) => [channel, channelName]))
  channels.value = [...all].map(([channel, name]) => ({ channel, name }))
}
