/** What a person chooses from to narrow the list of conversations. */

import { signal } from "../lib.js"
import { describeScope } from "../scopes.js"
import { client } from "./client.js"

/** The people and chats that have conversations, with their names. */
export const people = signal(/** @type {Array<{ scope: string, name: string }>} */ ([]))
export const channels = signal(/** @type {Array<{ channel: string, name: string }>} */ ([]))

/** Read who has conversations; names are known to those who may see them. */
export async function loadPeople() {
  const [found, known] = await Promise.all([
    client.call("conversation.scopes"),
    client.call("person.list").catch(() => ({ items: [] })),
  ])
  const described = found.items.map((one) => ({ scope: one.scope, ...describeScope(one.scope, known.items) }))
  people.value = described.map(({ scope, name }) => ({ scope, name }))
  const all = new Map(described.map(({ channel, channelName }) => [channel, channelName]))
  channels.value = [...all].map(([channel, name]) => ({ channel, name }))
}
