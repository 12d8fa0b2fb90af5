/** Short messages at the edge of the page, each with at most one action. */

import { signal } from "../lib.js"
import { messageOf } from "./client.js"

/** @typedef {{ id: number, text: string, isError: boolean, action?: { label: string, run: () => void } }} Toast */

export const toasts = signal(/** @type {Toast[]} */ ([]))
const SHOWN_FOR = 7000
let lastId = 0

/**
 * @param {string} text
 * @param {{ action?: Toast["action"], isError?: boolean }} [options]
 */
export function showToast(text, { action, isError = false } = {}) {
  const id = ++lastId
  toasts.value = [...toasts.value, { id, text, isError, action }]
  setTimeout(() => hideToast(id), isError ? 2 * SHOWN_FOR : SHOWN_FOR)
}

/** @param {number} id */
export function hideToast(id) {
  toasts.value = toasts.value.filter((one) => one.id !== id)
}

/**
 * Do something; what fails is told at the edge of the page. Returns whether it succeeded.
 *
 * @param {() => Promise<unknown>} work
 */
export async function attempt(work) {
  try {
    await work()
    return true
  } catch (error) {
    showToast(messageOf(error), { isError: true })
    return false
  }
}
