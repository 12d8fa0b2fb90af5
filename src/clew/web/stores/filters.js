/** What the list of conversations is narrowed to: a person, a channel, a time. */

import { computed, signal } from "../lib.js"

/** @typedef {{ scope: string, channel: string, from: string, to: string }} Filters dates are those of this browser */

const NOTHING = { scope: "", channel: "", from: "", to: "" }

export const filters = signal(/** @type {Filters} */ (NOTHING))
export const isFiltered = computed(() => Object.values(filters.value).some(Boolean))

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
