/** The address in the page: which page is shown, and of what. */

import { computed, signal } from "./lib.js"

const hash = signal(location.hash)
addEventListener("hashchange", () => {
  hash.value = location.hash
})

/** The parts of the address: `#/c/cnv_1` is `["c", "cnv_1"]`. */
export const address = computed(() => hash.value.replace(/^#\/?/, "").split("/").filter(Boolean).map(decode))

/**
 * @param {string} part a part that a person may have written, and not as addresses are
 */
function decode(part) {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/** @param {...string} parts */
export function link(...parts) {
  return `#/${parts.map(encodeURIComponent).join("/")}`
}

/** @param {...string} parts */
export function go(...parts) {
  location.hash = link(...parts)
}

/**
 * Change the address without a step back to the old one.
 *
 * @param {...string} parts
 */
export function replace(...parts) {
  history.replaceState(null, "", link(...parts))
  hash.value = location.hash
}
