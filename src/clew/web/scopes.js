/** Names of the people and chats that conversations belong to. Pure. */

import { showHidden } from "./format.js"

/** @import { PersonShape } from "./rpc_types.d.ts" */

const HERE = "This machine"

/**
 * The name of a person or a chat, and of their channel.
 *
 * @param {string} scope such as `person:telegram:42`
 * @param {PersonShape[]} known
 */
export function describeScope(scope, known) {
  const [kind, platform = "", chat = "", mark, account = ""] = scope.split(":").map(unquote)
  if (platform === "") return { name: HERE, channel: "local", channelName: HERE }
  const of = mark === "account" ? account : ""
  const accounts = new Set(of ? [of] : ["", platform])
  const person = known.find((one) => one.channel === platform && one.user === chat && accounts.has(one.account))
  const name = kind === "person" ? (person?.name ?? chat) : `Chat ${chat}`
  const channel = of || platform
  return { name: `${showHidden(name)} (${showHidden(channel)})`, channel, channelName: showHidden(channel) }
}

/** @param {string} part */
const unquote = (part) => part.replaceAll("%3A", ":").replaceAll("%25", "%")
