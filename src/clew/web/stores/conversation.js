/** One conversation as it is shown: entries of the log, the text that is being written, its state. */

import { applyProgress, applyResults, buildBlocks, extractResults } from "../entries.js"
import { batch, computed, signal } from "../lib.js"
import { client, messageOf } from "./client.js"

/** @import { Block, CallResult } from "../entries.js" */
/** @import { ConversationShape, EntryNotice, EntryShape, Notice, StateShape, UsageShape } from "../rpc_types.d.ts" */

/** Entries that are loaded at first, and for each step back. */
const PAGE_SIZE = 60
const NOTHING = { turn: "", text: "", thinking: "" }

export class ConversationStore {
  conversation = signal(/** @type {ConversationShape | null} */ (null))
  state = signal(/** @type {StateShape | null} */ (null))
  usage = signal(/** @type {UsageShape | null} */ (null))
  blocks = signal(/** @type {Block[]} */ ([]))
  /** The text of the current response so far, which an entry will replace. */
  live = signal(NOTHING)
  /** The first entry that is loaded; 1 is the beginning. */
  first = signal(1)
  trouble = signal("")
  isGone = signal(false)
  isLoading = signal(true)
  /** Counts events, so that others learn of each. */
  changes = signal(0)

  isRunning = computed(() => Boolean(this.state.value?.turn))
  approvals = computed(() => (this.state.value?.approvals ?? []).filter((one) => one.state === "open"))
  queue = computed(() => this.state.value?.queue ?? [])
  title = computed(() => this.state.value?.title ?? this.conversation.value?.title ?? "")

  /** The last entry that was received. */
  #seq = 0
  /** @type {CallResult[]} results whose calls are not loaded */
  #strays = []
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

  /** Open the conversation and follow it. */
  async open() {
    try {
      const { conversation, state } = await client.call("conversation.open", { conversation: this.name })
      this.#seq = conversation.entries
      const tail = await this.#read(conversation.id, conversation.entries + 1)
      batch(() => {
        this.conversation.value = conversation
        this.state.value = state
        this.first.value = conversation.entries + 1
        this.#prepend(tail)
        this.isLoading.value = false
      })
      this.#leave = client.follow(conversation.id, {
        after: () => this.#seq,
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

  /** Load entries before those that are shown. */
  async loadOlder() {
    const before = this.first.value
    const found = before > 1 ? await this.#read(this.id, before) : []
    if (this.first.value === before) this.#prepend(found)
  }

  /**
   * @param {string} conversation
   * @param {number} before
   */
  async #read(conversation, before) {
    if (before <= 1) return []
    return (await client.call("conversation.entries", { conversation, before, limit: PAGE_SIZE })).items
  }

  /** @param {EntryShape[]} entries */
  #prepend(entries) {
    const older = entries.filter((entry) => entry.seq < this.first.value)
    const added = older.flatMap(buildBlocks)
    const results = [...older.flatMap(extractResults), ...this.#strays]
    const { blocks, strays } = applyResults(added, results)
    this.#strays = strays
    this.blocks.value = [...blocks, ...this.blocks.value]
    this.first.value = older[0]?.seq ?? 1
  }

  /** @param {Notice} event */
  #receive(event) {
    batch(() => {
      this.#apply(event)
      this.changes.value += 1
    })
    if (event.type === "turn_closed" || event.type === "turn_begun") this.refreshUsage()
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
        this.blocks.value = applyProgress(this.blocks.value, event.call, event.status)
        return
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
    if (entry.seq <= this.#seq) return
    this.#seq = entry.seq
    const added = [...this.blocks.value, ...buildBlocks(entry)]
    const { blocks, strays } = applyResults(added, extractResults(entry))
    this.#strays.push(...strays)
    this.blocks.value = blocks
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

  /** Read usage, lineage and title again. */
  async refreshUsage() {
    try {
      const told = await client.call("conversation.status", { conversation: this.id })
      batch(() => {
        this.usage.value = told.usage
        this.conversation.value = told.conversation
      })
    } catch {
      // The next turn tries again.
    }
  }
}
