/** The one connection of the page, and what it says of the gateway. */

import { signal } from "../lib.js"
import { CallFailed, RpcClient } from "../rpc.js"
import { checkLogin } from "../session.js"

/** @import { AgentShape, CommandShape } from "../rpc_types.d.ts" */

const url = new URL("api/ws", document.baseURI)
url.protocol = url.protocol.replace("http", "ws")
url.hash = ""

export const client = new RpcClient(url.href, checkLogin)
export const agent = signal(/** @type {AgentShape | null} */ (null))
export const commands = signal(/** @type {CommandShape[]} */ ([]))

/**
 * Connect, and read what does not change while the gateway runs.
 *
 * @param {boolean} isLoggedIn whether the gateway has just said so
 */
export async function start(isLoggedIn) {
  client.start(isLoggedIn)
  agent.value = await client.call("agent.describe")
  commands.value = (await client.call("commands.list")).items
}

/**
 * What a person reads of an error.
 *
 * @param {unknown} error
 */
export function messageOf(error) {
  return error instanceof CallFailed || error instanceof Error ? error.message : String(error)
}
