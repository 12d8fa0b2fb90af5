/** The page of a conversation that begins with its first message; it is loaded first. */

import { html, useEffect, useState } from "../lib.js"
import { Composer } from "../parts/composer.js"
import { Header } from "../parts/header.js"
import { UnsentMessage } from "../parts/queue.js"
import { replace } from "../router.js"
import { agent, client } from "../stores/client.js"
import { runCommand } from "../stores/commands.js"
import { begun, makeNewTarget, NEW_PREFIX, outbox, submit } from "../stores/outbox.js"

/** @import { Attachment } from "../rpc_types.d.ts" */

export function NewPage() {
  // One name for each visit: a message that is sent again leads to the same conversation.
  const [name] = useState(makeNewTarget)
  const isConnected = client.link.value === "up"
  const unsent = outbox.value.filter((item) => item.target.startsWith(NEW_PREFIX))
  const opened = begun.value
  useEffect(() => {
    document.title = "Clew"
  }, [])
  useEffect(() => {
    if (!opened) return
    begun.value = null
    replace("c", opened.conversation)
  }, [opened])
  /**
   * @param {string} text
   * @param {Attachment[]} attachments
   */
  const send = (text, attachments) => {
    if (text.startsWith("/") && !attachments.length) runCommand("main", text.trim())
    else submit(name, text, { attachments })
  }
  return html`<main class="page">
    <${Header} title="New conversation" />
    <div class="transcript-frame">
      <div class="transcript">
        <div class="column">
          ${unsent.length
            ? unsent.map((item) => html`<${UnsentMessage} key=${item.key} item=${item} isConnected=${isConnected} />`)
            : html`<div class="welcome"><p>How can I help?</p></div>`}
        </div>
      </div>
    </div>
    <${Composer}
      draftKey="new"
      isRunning=${false}
      send=${send}
      stop=${() => {}}
      footer=${html`<span class="model">${agent.value?.model.split(":").at(-1) ?? ""}</span>`}
    />
  </main>`
}
