/** One conversation as it is shown: entries of the log, the text that is being written, its state. */

import { batch, computed, signal } from "../lib.js"
import { findCompactions } from "../lineage.js"
import { CallFailed } from "../rpc.js"
import { client, messageOf } from "./client.js"
import { drawAttention } from "./attention.js"
import { EntryRange } from "./entry_range.js"

/** @import { Compaction } from "../lineage.js" */
/** @import { ConversationShape, EntryNotice, Notice, StateShape, UsageShape } from "../rpc_types.d.ts" */

const NOTHING = { turn: "", text: "", thinking: "" }

export class ConversationStore {
  conversation = signal(/** @type {ConversationShape | null} */ (null))
  state = signal(/** @type {StateShape | null} */ (null))
  usage = signal(/** @type {UsageShape | null} */ (null))
  range = new EntryRange()
  /** The text of the current response so far, which an entry will replace. */
  live = signal(NOTHING)
  trouble = signal("")
  isGone = signal(false)
  isLoading = signal(true)
  /** The entry that is to be seen, for a person who came for it; 0 is the end. */
  target = signal({ seq: 0 })
  /** Where older messages became a summary. */
  compactions = signal(/** @type {Compaction[]} */ ([]))
  /** Counts events, so that others learn of each. */
  changes = signal(0)

  isRunning = computed(() => Boolean(this.state.value?.turn))
  approvals = computed(() => (this.state.value?.approvals ?? []).filter((one) => one.state === "open"))
  queue = computed(() => this.state.value?.queue ?? [])
  title = computed(() => this.state.value?.title ?? this.conversation.value?.title ?? "")

  /** The questions that a person was told of. */
  #asked = ""
  /** The sessions whose compactions are known. */
  #sessions = ""
  /** @type {(() => void) | null} */
  #leave = null
  #pending = NOTHING
  #isPainting = false

  /** @param {string} name a NAME or an id */
  constructor(name) {
    this.name = name
  }

  get id() {
    return this.conversation.value?.id ?? this.name
  }

  /**
   * Open the conversation and follow it.
   *
   * @param {number} [at] the entry to show first
   */
  async open(at) {
    try {
      const { conversation, state } = await client.call("conversation.open", { conversation: this.name })
      this.range.newest.value = conversation.entries
      await this.range.show(conversation.id, at)
      batch(() => {
        this.conversation.value = conversation
        this.state.value = state
        this.target.value = { seq: at ?? 0 }
        this.isLoading.value = false
      })
      this.#leave = client.follow(conversation.id, {
        after: () => this.range.newest.value,
        receive: (event) => this.#receive(event),
        resume: () => this.#setLive(NOTHING),
      })
      this.refreshUsage()
    } catch (error) {
      batch(() => {
        this.isLoading.value = false
        this.trouble.value = messageOf(error)
      })
    }
  }

  /** Follow it no longer. */
  close() {
    this.#leave?.()
    this.#leave = null
  }

  /**
   * Show another part of it: what is around an entry, or the end.
   *
   * @param {number} [at]
   */
  async show(at) {
    await this.#load(async () => {
      const { first, last, hasEnd } = this.range
      const isLoaded = at ? first.value <= at && at <= last.value : hasEnd.value
      if (!isLoaded) await this.range.show(this.id, at)
      this.target.value = { seq: at ?? 0 }
    })
  }

  async loadOlder() {
    await this.#load(() => this.range.loadOlder(this.id))
  }

  async loadNewer() {
    await this.#load(() => this.range.loadNewer(this.id))
  }

  /** @param {() => Promise<void>} load */
  async #load(load) {
    try {
      await load()
    } catch (error) {
      // A lost connection comes back, and what is read by scrolling is asked for again.
      if (!(error instanceof CallFailed && error.isRepeatable)) this.trouble.value = messageOf(error)
    }
  }

  /** @param {Notice} event */
  #receive(event) {
    batch(() => {
      this.#apply(event)
      this.changes.value += 1
    })
    this.#notify(event)
    const isOtherSession = event.session !== this.conversation.value?.head_session
    if (event.type === "turn_closed" || event.type === "turn_begun") this.refreshUsage()
    else if (isOtherSession && (event.type === "entry" || event.type === "state")) this.refreshUsage()
  }

  /**
   * Tell a person who looks at another tab what waits for them.
   *
   * @param {Notice} event
   */
  #notify(event) {
    const title = this.title.value || "Clew"
    const conversation = this.id
    if (event.type === "turn_closed") {
      const answer = this.range.blocks.value.findLast((block) => block.kind === "answer" && block.turn === event.turn)
      drawAttention({ title, conversation, text: event.error ?? answer?.text ?? "The turn has ended" })
    }
    const asked = this.approvals.value.map((one) => one.id).join()
    if (asked && asked !== this.#asked) drawAttention({ title, conversation, text: "A tool call waits for your approval" })
    this.#asked = asked
  }

  /** @param {Notice} event */
  #apply(event) {
    switch (event.type) {
      case "entry":
        return this.#addEntry(event)
      case "delta": {
        const field = event.kind === "text" ? "text" : "thinking"
        const so = this.#pending
        return this.#setLive({ ...so, turn: event.turn, [field]: so[field] + event.text })
      }
      case "snapshot":
        return this.#setLive({ ...NOTHING, turn: event.turn, text: event.text })
      case "retracted":
      case "turn_begun":
        return this.#setLive({ ...NOTHING, turn: event.turn })
      case "tool":
        return this.range.noteProgress(event.call, event.status)
      case "turn_closed":
        this.trouble.value = event.error ?? ""
        return this.#setLive(NOTHING)
      case "state":
        this.state.value = event.state
        return
      case "deleted":
        this.isGone.value = true
    }
  }

  /** @param {EntryNotice} entry */
  #addEntry(entry) {
    if (!this.range.receive(entry)) return
    if (entry.role === "user") this.trouble.value = ""
    this.#setLive({ ...NOTHING, turn: this.#pending.turn })
  }

  /**
   * Show the text so far, once for each picture of the screen. What an entry replaces goes with
   * the same picture in which the entry comes.
   *
   * @param {typeof NOTHING} live
   */
  #setLive(live) {
    this.#pending = live
    if (!live.text && !live.thinking) {
      this.live.value = live
      return
    }
    if (this.#isPainting) return
    this.#isPainting = true
    const paint = () => {
      this.#isPainting = false
      this.live.value = this.#pending
    }
    if (document.hidden) setTimeout(paint, 100)
    else requestAnimationFrame(paint)
  }

  /** @param {ConversationShape} conversation */
  async #readCompactions({ id, sessions }) {
    const known = sessions.map((one) => one.id).join()
    if (known === this.#sessions || !sessions.some((one) => one.opened_by === "compression")) return
    const lineage = await client.call("conversation.lineage", { conversation: id })
    this.#sessions = known
    this.compactions.value = findCompactions(lineage.sessions)
  }

  /** Read usage, sessions and title again. */
  async refreshUsage() {
    try {
      const told = await client.call("conversation.status", { conversation: this.id })
      batch(() => {
        this.usage.value = told.usage
        this.conversation.value = told.conversation
      })
      await this.#readCompactions(told.conversation)
    } catch {
      // The next turn tries again.
    }
  }
}
