/** Numbers, times and texts as people read them. */

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE

/**
 * A count of tokens: `950`, `12k`, `1.2M`.
 *
 * @param {number} count
 */
export function formatCount(count) {
  if (count < 1000) return String(count)
  return count < 1_000_000 ? `${Math.round(count / 1000)}k` : `${(count / 1_000_000).toFixed(1)}M`
}

/** @param {number} dollars */
export function formatCost(dollars) {
  return `$${dollars.toFixed(dollars >= 0.1 ? 2 : 4)}`
}

/**
 * A duration: `3.2 s`, `45 s`, `2 min 5 s`.
 *
 * @param {number} milliseconds
 */
export function formatDuration(milliseconds) {
  const seconds = milliseconds / 1000
  if (seconds < 10) return `${seconds.toFixed(1)} s`
  if (seconds < 60) return `${Math.round(seconds)} s`
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`
}

/**
 * How long something lasts, roughly: `8 s`, `5 min`, `3 h`, `12 days`.
 *
 * @param {number} milliseconds
 */
export function formatAge(milliseconds) {
  const past = Math.max(0, milliseconds)
  if (past < MINUTE) return `${Math.floor(past / 1000)} s`
  if (past < 60 * MINUTE) return `${Math.floor(past / MINUTE)} min`
  if (past < DAY) return `${Math.floor(past / (60 * MINUTE))} h`
  const days = Math.floor(past / DAY)
  return days === 1 ? "1 day" : `${days} days`
}

/**
 * When something was: the time of today, else the day.
 *
 * @param {string} moment
 * @param {number} [now]
 */
export function formatWhen(moment, now = Date.now()) {
  const then = new Date(moment)
  const ago = now - then.getTime()
  if (ago < MINUTE) return "now"
  if (ago < 60 * MINUTE) return `${Math.floor(ago / MINUTE)} min`
  if (new Date(now).toDateString() === then.toDateString()) {
    return then.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })
  }
  if (ago < 6 * DAY) return then.toLocaleDateString([], { weekday: "short" })
  return then.toLocaleDateString([], { month: "short", day: "numeric" })
}

/**
 * A day and a time, in full.
 *
 * @param {string} moment
 */
export function formatMoment(moment) {
  return new Date(moment).toLocaleString([], { dateStyle: "medium", timeStyle: "short" })
}

/** Characters that are not seen, or that turn the direction of what is read. */
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]|[\u{e0000}-\u{e007f}]/gu

/**
 * A text whose characters are all seen, for what a person decides by: names and arguments.
 *
 * @param {string} text
 */
export function showHidden(text) {
  return text.replace(HIDDEN, (one) => `\\u${(one.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`)
}

/**
 * JSON with indentation; any other text as it is.
 *
 * @param {string} text
 */
export function prettyJson(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

/**
 * A size: `950 bytes`, `12 kB`, `1.2 MB`.
 *
 * @param {number} bytes
 */
export function formatSize(bytes) {
  if (bytes < 1000) return `${bytes} bytes`
  const units = ["kB", "MB", "GB", "TB"]
  const place = Math.min(units.length, Math.floor(Math.log10(bytes) / 3))
  const number = bytes / 1000 ** place
  return `${number >= 10 ? Math.round(number) : number.toFixed(1)} ${units[place - 1]}`
}

/**
 * A number with its noun: `1 entry`, `1,200 entries`.
 *
 * @param {number | undefined} number
 * @param {string} one
 * @param {string} [many]
 */
export function formatNoun(number, one, many = `${one}s`) {
  return `${(number ?? 0).toLocaleString("en")} ${number === 1 ? one : many}`
}
