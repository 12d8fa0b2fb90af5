/** The one connection of the page, and what it says of the gateway. */

import { openSocket } from "../early.js"
import { signal } from "../lib.js"
import { CallFailed, RpcClient } from "../rpc.js"
import { checkLogin } from "../session.js"

/** @import { AgentShape, CommandShape } from "../rpc_types.d.ts" */

export const client = new RpcClient(openSocket, checkLogin)
export const agent = signal(/** @type {AgentShape | null} */ (null))
export const commands = signal(/** @type {CommandShape[]} */ ([]))

/**
 * Connect, and read what does not change while the gateway runs.
 *
 * @param {{ isLoggedIn: boolean, socket: WebSocket | null }} session as the gateway has just said
 */
export async function start({ isLoggedIn, socket }) {
  client.start(isLoggedIn, socket)
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
