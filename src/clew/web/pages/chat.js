/** The page of one conversation. */

import { effect, html, untracked, useEffect, useMemo, useState } from "../lib.js"
import { Approval } from "../parts/approval.js"
import { Composer, insertion } from "../parts/composer.js"
import { Gauge, ModelMenu } from "../parts/gauge.js"
import { Header } from "../parts/header.js"
import { Icon } from "../parts/icon.js"
import { Menu } from "../parts/menu.js"
import { QueuedMessage, UnsentMessage } from "../parts/queue.js"
import { SideWork } from "../parts/side_work.js"
import { Transcript } from "../parts/transcript.js"
import { go, link } from "../router.js"
import { client } from "../stores/client.js"
import { replies, runCommand } from "../stores/commands.js"
import { ConversationStore } from "../stores/conversation.js"
import { askForTitle, reload, remove } from "../stores/conversations.js"
import { askToCompact } from "../stores/compaction.js"
import { dropStored, outbox, submit } from "../stores/outbox.js"
import { attempt } from "../stores/toasts.js"

/** @import { Block } from "../entries.js" */
/** @import { Attachment, ConversationShape, DoubleText } from "../rpc_types.d.ts" */

/**
 * Save a conversation as a file, which the gateway makes.
 *
 * @param {string} conversation
 * @param {"html" | "markdown" | "json"} format
 */
function saveExport(conversation, format) {
  const place = document.createElement("a")
  place.href = `api/conversations/${encodeURIComponent(conversation)}/export?format=${format}`
  place.download = ""
  place.click()
}

/** @param {ConversationStore} store */
function makeActions(store) {
  return {
    conversation: () => store.id,
    /** @param {Block} block */
    edit: (block) =>
      attempt(async () => {
        await client.call("conversation.rewind", { conversation: store.id, to: block.seq - 1 })
        insertion.value = block.text
      }),
    /** @param {Block} block */
    branch: (block) =>
      attempt(async () => {
        const made = await client.call("conversation.branch", { conversation: store.id, at: block.seq })
        go("c", made.id)
        reload()
      }),
    retry: () => attempt(() => client.call("conversation.retry", { conversation: store.id })),
  }
}

/**
 * What can be done with a conversation.
 *
 * @param {ConversationStore} store
 * @param {ConversationShape} conversation
 */
function makeItems(store, conversation) {
  return [
    { label: "Rename", icon: "edit", run: () => askForTitle(store.id, store.title.value) },
    { label: "Summarise older messages", icon: "tool", run: () => attempt(() => askToCompact(store)) },
    { label: "History", icon: "branch", run: () => go("history", store.id) },
    { label: "Save as a page", icon: "down", run: () => saveExport(store.id, "html") },
    { label: "Save as Markdown", icon: "down", run: () => saveExport(store.id, "markdown") },
    { label: "Save as JSON", icon: "down", run: () => saveExport(store.id, "json") },
    {
      label: "Delete",
      icon: "trash",
      isDangerous: true,
      run: async () => {
        await remove(conversation)
        go("new")
      },
    },
  ]
}

/** @param {{ store: ConversationStore }} props */
function ChatHeader({ store }) {
  const conversation = store.conversation.value
  const items = conversation ? makeItems(store, conversation) : []
  return html`<${Header} title=${store.title.value || "Untitled"}>
    ${conversation?.origin &&
    html`<a class="lineage" href=${link("history", conversation.id)}><${Icon} name="branch" size="14" />branch</a>`}
    ${conversation && html`<${Menu} label="Actions" items=${items} />`}
  <//>`
}

/** @param {{ store: ConversationStore }} props */
function Status({ store }) {
  const isRunning = store.isRunning.value
  const isAsking = store.approvals.value.length > 0
  const words = isAsking ? "Waiting for your approval" : isRunning ? "Working" : ""
  const live = store.live.value
  const isQuiet = isRunning && !isAsking && !live.text && !live.thinking
  return html`<div role="status" class="sr-only">${words}</div>
    ${isQuiet && html`<div class="working" aria-hidden="true"><span></span><span></span><span></span></div>`}`
}

/** @param {{ name: string, at?: number }} props an id, and the entry that is to be seen */
export function ChatPage({ name, at }) {
  const [store, setStore] = useState(() => new ConversationStore(name))
  /** Counts what was sent: a person who sends wants to see the end. */
  const [sent, setSent] = useState(0)
  useEffect(() => {
    const made = store.name === name ? store : new ConversationStore(name)
    setStore(made)
    made.open(at)
    return () => made.close()
  }, [name])
  useEffect(() => {
    if (store.name === name && !store.isLoading.value) store.show(at)
  }, [at])
  // What is stored stands in the conversation once anything was heard of it.
  useEffect(
    () =>
      effect(() => {
        if (store.changes.value) untracked(dropStored)
      }),
    [store],
  )
  const title = store.title.value
  useEffect(() => {
    document.title = title ? `${title} · Clew` : "Clew"
    reload()
  }, [title])

  /**
   * @param {string} text
   * @param {Attachment[]} attachments
   * @param {DoubleText} [rule]
   */
  const send = (text, attachments, rule) => {
    setSent(sent + 1)
    if (text.startsWith("/") && !attachments.length) runCommand(store.id, text.trim())
    else submit(store.id, text, { attachments, rule })
  }
  const stop = () => attempt(() => client.call("turn.interrupt", { conversation: store.id }))
  const isConnected = client.link.value === "up"
  const unsent = outbox.value.filter((item) => item.target === store.id)
  const told = replies.value.filter((one) => one.conversation === store.id)
  const actions = useMemo(() => makeActions(store), [store])
  return html`<main class="page">
    <${ChatHeader} store=${store} />
    <${SideWork} key=${`work of ${store.id}`} store=${store} />
    <${Transcript} key=${store.name} store=${store} actions=${actions} sent=${sent}>
      ${told.map((one, n) => html`<pre class="note reply" key=${n}>${one.text}</pre>`)}
      ${store.trouble.value && html`<p class="note error-text" role="alert">${store.trouble.value}</p>`}
      ${store.isGone.value && html`<p class="note">This conversation was deleted.</p>`}
      ${store.approvals.value.map((one) => html`<${Approval} key=${one.id} approval=${one} />`)}
      <${Status} store=${store} />
      ${store.queue.value.map((item) => html`<${QueuedMessage} key=${item.inbox_id} item=${item} />`)}
      ${unsent.map((item) => html`<${UnsentMessage} key=${item.key} item=${item} isConnected=${isConnected} />`)}
    <//>
    <${Composer}
      draftKey=${store.name}
      isRunning=${store.isRunning.value}
      send=${send}
      stop=${stop}
      footer=${html`<${ModelMenu} conversation=${store.id} model=${store.state.value?.model ?? ""} />
        <${Gauge} usage=${store.usage.value} />`}
    />
  </main>`
}
