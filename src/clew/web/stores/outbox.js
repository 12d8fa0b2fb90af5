/**
 * Messages that the gateway has not confirmed. Each has a key from the moment at which a person
 * sends it, and is sent again with that key until it is stored: also after the page was loaded again.
 */

import { signal } from "../lib.js"
import { CallFailed } from "../rpc.js"
import { client, messageOf } from "./client.js"

/** @import { Attachment, DoubleText } from "../rpc_types.d.ts" */
/**
 * @typedef {object} OutboxItem
 * @property {string} key
 * @property {string} target the NAME or id of its conversation
 * @property {string} text
 * @property {Attachment[]} attachments
 * @property {DoubleText} [rule] what happens while a turn runs
 * @property {"sending" | "stored" | "refused"} state
 * @property {string} [reason]
 */

const STORAGE_KEY = "clew.outbox"
const PAUSE = 400
/** Milliseconds for which a stored message is shown here, if no event tells of it. */
const LINGER = 4000
/** How the names of conversations begin that are begun here. */
export const NEW_PREFIX = "web-"
/** Milliseconds to wait until the page follows a new conversation. */
const FOLLOW_PATIENCE = 1500

export const outbox = signal(/** @type {OutboxItem[]} */ (read()))
/** The conversation that the first message to a new name has begun. */
export const begun = signal(/** @type {{ target: string, conversation: string } | null} */ (null))
let isDelivering = false

/** @returns {OutboxItem[]} */
function read() {
  try {
    return JSON.parse(sessionStorage.getItem(STORAGE_KEY) ?? "[]")
  } catch {
    return []
  }
}

function write() {
  const open = outbox.value.filter((item) => item.state !== "stored")
  try {
    sessionStorage.setItem(STORAGE_KEY, JSON.stringify(open))
  } catch {
    // Too large with its files: it is kept as long as the page.
  }
}

/** @param {OutboxItem[]} items */
function set(items) {
  outbox.value = items
  write()
}

/**
 * Send a message, exactly once.
 *
 * @param {string} target
 * @param {string} text
 * @param {{ attachments?: Attachment[], rule?: DoubleText }} [options]
 */
export function submit(target, text, { attachments = [], rule } = {}) {
  const key = crypto.randomUUID?.() ?? makeName(16)
  set([...outbox.value, { key, target, text, attachments, rule, state: "sending" }])
  deliver()
}

/**
 * A random name; without TLS a page has no ``randomUUID``.
 *
 * @param {number} bytes
 */
function makeName(bytes) {
  return [...crypto.getRandomValues(new Uint8Array(bytes))].map((one) => one.toString(16).padStart(2, "0")).join("")
}

/** A target for the first message of a new conversation. */
export const makeNewTarget = () => `${NEW_PREFIX}${makeName(6)}`

/** Deliver what waits, one after the other. */
export async function deliver() {
  if (isDelivering) return
  isDelivering = true
  try {
    for (;;) {
      const item = outbox.value.find((one) => one.state === "sending")
      if (!item) return
      await deliverItem(item)
    }
  } finally {
    isDelivering = false
  }
}

/**
 * Open the conversation that a message begins, so that the page follows it before the model is
 * asked: what is written is told only to those who listen by then.
 *
 * @param {OutboxItem} item
 */
async function openTarget(item) {
  if (!item.target.startsWith(NEW_PREFIX)) return item.target
  const { conversation } = await client.call("conversation.open", { conversation: item.target })
  begun.value = { target: item.target, conversation: conversation.id }
  set(outbox.value.map((one) => (one.target === item.target ? { ...one, target: conversation.id } : one)))
  await new Promise((resolve) => {
    const timer = setTimeout(resolve, FOLLOW_PATIENCE)
    const stop = client.followed.subscribe((known) => {
      if (!known.has(conversation.id)) return
      clearTimeout(timer)
      queueMicrotask(() => stop())
      resolve(null)
    })
  })
  return conversation.id
}

/** @param {OutboxItem} item */
async function deliverItem(item) {
  try {
    const target = await openTarget(item)
    await client.call("prompt.submit", {
      session_id: target,
      text: item.text,
      key: item.key,
      ...(item.attachments.length ? { attachments: item.attachments } : {}),
      ...(item.rule ? { double_text: item.rule } : {}),
    })
    change(item.key, { state: "stored", attachments: [] })
    setTimeout(() => drop(item.key), LINGER)
  } catch (error) {
    if (error instanceof CallFailed && error.isRepeatable) {
      await new Promise((resolve) => setTimeout(resolve, PAUSE))
    } else {
      change(item.key, { state: "refused", reason: messageOf(error) })
    }
  }
}

/**
 * @param {string} key
 * @param {Partial<OutboxItem>} fields
 */
function change(key, fields) {
  set(outbox.value.map((one) => (one.key === key ? { ...one, ...fields } : one)))
}

/** @param {string} key */
export function drop(key) {
  set(outbox.value.filter((one) => one.key !== key))
}

/** Drop what is stored: the conversation itself shows it now. */
export function dropStored() {
  if (outbox.value.some((one) => one.state === "stored")) {
    set(outbox.value.filter((one) => one.state !== "stored"))
  }
}

/**
 * Send a refused message again.
 *
 * @param {string} key
 */
export function retry(key) {
  change(key, { state: "sending", reason: undefined })
  deliver()
}
