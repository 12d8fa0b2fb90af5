/** What runs beside the talk: tasks of other agents, and commands in the background. */

import { showHidden } from "../format.js"
import { html, useState } from "../lib.js"
import { client } from "../stores/client.js"
import { ActionButton } from "./action_button.js"
import { useResource } from "./resource.js"

/** @import { ConversationStore } from "../stores/conversation.js" */
/** @import { ProcessShape, TaskShape } from "../rpc_types.d.ts" */
/**
 * @typedef {object} Work
 * @property {string} id
 * @property {string} title
 * @property {string} about
 * @property {boolean} isRunning
 * @property {() => Promise<unknown>} stop
 * @property {() => Promise<string>} read
 */

const EVERY = 3000
const OUTPUT_EVERY = 2000
const NONE = { items: [] }

/**
 * @param {TaskShape} task
 * @returns {Work}
 */
const describeTask = (task) => ({
  id: task.id,
  title: task.title,
  about: `Task, ${task.state}, step ${task.steps} of ${task.max_steps}`,
  isRunning: !task.ended,
  stop: () => client.call("agent.stop", { task: task.id }),
  read: async () => (await client.call("agent.read", { task: task.id })).text,
})

/**
 * @param {ProcessShape} process
 * @returns {Work}
 */
const describeProcess = (process) => ({
  id: process.id,
  title: process.command,
  about: `Command, ${process.ending ?? process.state}`,
  isRunning: process.state === "running",
  stop: () => client.call("process.stop", { process: process.id }),
  read: async () => (await client.call("process.output", { process: process.id })).text,
})

/**
 * The work of a conversation that runs, and the one whose output is read.
 *
 * @param {string} conversation
 * @param {string} shown
 */
async function readWork(conversation, shown) {
  // A gateway may have neither agents nor a shell, and a person no right to see them.
  const [tasks, processes] = await Promise.all([
    client.call("agent.list", { conversation, done: Boolean(shown) }).catch(() => NONE),
    client.call("process.list", {}).catch(() => NONE),
  ])
  const own = processes.items.filter((one) => one.conversation === conversation && one.background)
  const all = [...tasks.items.map(describeTask), ...own.map(describeProcess)]
  return all.filter((one) => one.isRunning || one.id === shown)
}

/** @param {{ work: Work }} props */
function Output({ work }) {
  const output = useResource(work.read, { every: OUTPUT_EVERY, on: [work.id] })
  if (output.trouble) return html`<p class="error-text" role="alert">${output.trouble}</p>`
  return html`<pre class="output" tabindex="0" aria-label=${`Output of ${showHidden(work.title)}`}>${output.value || "No output yet."}</pre>`
}

/** @param {{ store: ConversationStore }} props */
export function SideWork({ store }) {
  const [shown, setShown] = useState("")
  const [isBusy, setBusy] = useState(false)
  const work = useResource(
    async () => {
      const found = await readWork(store.id, shown)
      setBusy(found.length > 0)
      return found
    },
    { every: isBusy || store.isRunning.value ? EVERY : 0, on: [store.id, shown, isBusy, store.isRunning.value] },
  )
  if (!work.value?.length) return null
  return html`<aside class="side-work" aria-label="Beside the conversation">
    <h2>Running beside the conversation</h2>
    <ul>
      ${work.value.map(
        (one) => html`<li key=${one.id}>
          <div class="side-work-title">${showHidden(one.title)}</div>
          <div class="hint">${one.about}</div>
          <div class="buttons">
            <button
              type="button"
              aria-expanded=${shown === one.id}
              aria-label=${`Output: ${showHidden(one.title)}`}
              onClick=${() => setShown(shown === one.id ? "" : one.id)}
            >
              Output
            </button>
            ${one.isRunning &&
            html`<${ActionButton}
              label="Stop"
              about=${showHidden(one.title)}
              run=${async () => {
                await one.stop()
                await work.reload()
              }}
            />`}
          </div>
          ${shown === one.id && html`<${Output} work=${one} />`}
        </li>`,
      )}
    </ul>
  </aside>`
}
