/** Questions over the page: whether something is meant, and what it is to be. */

import { signal } from "../lib.js"

/**
 * @typedef {object} Field
 * @property {string} name
 * @property {string} label
 * @property {string} [value]
 * @property {string} [hint]
 * @property {"text" | "area" | "check" | "password"} [kind]
 * @property {string[]} [choices]
 * @property {boolean} [isRequired]
 */
/**
 * @typedef {object} Question
 * @property {string} title
 * @property {string} [text]
 * @property {Field[]} [fields]
 * @property {string} confirm the words of the button
 * @property {boolean} [isDangerous]
 * @property {(given: Record<string, string>) => Promise<unknown>} run a failure is told in the dialog
 */

export const question = signal(/** @type {Question | null} */ (null))

/** @param {Question} asked */
export function openDialog(asked) {
  question.value = asked
}
