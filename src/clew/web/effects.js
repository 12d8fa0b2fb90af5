/** What a second run of a tool call would do, by the effect of its tool. */

/** @type {Record<string, string>} */
export const EFFECTS = {
  pure: "changes nothing",
  idempotent: "may run again with the same key",
  once: "never runs twice",
  ask: "asks before it runs again",
}
