/** Whether this browser is logged in, and how it gets there. */

import { takeEarlySocket } from "./early.js"
import { signal } from "./lib.js"

/** `null` until the gateway has said so. */
export const isLoginNeeded = signal(/** @type {boolean | null} */ (null))
const CODE = /^#login=([\w-]+)$/

/**
 * Ask the gateway something outside of JSON-RPC, which needs a login.
 *
 * @param {string} path
 * @param {{ body?: object, method?: string }} [options]
 */
export async function request(path, { body, method = body ? "POST" : "GET" } = {}) {
  const answer = await fetch(path, {
    method,
    headers: body ? { "Content-Type": "application/json" } : {},
    body: body ? JSON.stringify(body) : undefined,
    cache: "no-store",
  })
  const told = await answer.json()
  if (!answer.ok) throw new Error(told.error?.message ?? `the gateway answered ${answer.status}`)
  return told
}

/** Ask the gateway whether this browser has to log in; `false` while it cannot be reached. */
export async function checkLogin() {
  try {
    isLoginNeeded.value = (await request("api/login")).needed
  } catch {
    return false
  }
  return isLoginNeeded.value === false
}

/** Learn the same when the page was loaded, from the connection that was begun meanwhile. */
export async function beginSession() {
  const socket = await takeEarlySocket()
  if (!socket) return { isLoggedIn: await checkLogin(), socket: null }
  isLoginNeeded.value = false
  return { isLoggedIn: true, socket }
}

/**
 * Log in with the token, or with the code of a link.
 *
 * @param {{ token: string } | { code: string }} given
 */
export async function logIn(given) {
  isLoginNeeded.value = (await request("api/login", { body: given })).needed
}

/** Log this browser out. */
export async function logOut() {
  await request("api/logout", { body: {} })
  location.reload()
}

/** Take the code out of the address, where nobody should find it, and log in with it. */
export async function takeCode() {
  const code = CODE.exec(location.hash)?.[1]
  if (!code) return ""
  history.replaceState(null, "", "#/")
  try {
    await logIn({ code })
    return ""
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}
