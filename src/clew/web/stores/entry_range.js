/**
 * The part of a log that is loaded: a stretch without gaps that grows at both ends, and that loses
 * what is far from the end at which it grows. A long conversation takes no more than a short one.
 */

import { applyProgress, applyResults, buildBlocks, extractResults } from "../entries.js"
import { batch, computed, signal } from "../lib.js"
import { client } from "./client.js"

/** @import { Block } from "../entries.js" */
/** @import { EntryNotice, EntryShape } from "../rpc_types.d.ts" */
/** @typedef {EntryShape | EntryNotice} LoadedEntry */

/** Entries that are loaded when a conversation is opened: more than a screen shows. */
const FIRST_PAGE = 24
/** Entries that are loaded for each step to either side. */
const PAGE = 40
/** Entries that are kept. */
const MOST = 240

export class EntryRange {
  blocks = signal(/** @type {Block[]} */ ([]))
  /** The first and the last entry that are loaded. */
  first = signal(1)
  last = signal(0)
  /** The last entry of the log. */
  newest = signal(0)
  /** Whether a person reads the end, so that the beginning may go as the log grows. */
  isFollowed = true

  hasEnd = computed(() => this.last.value >= this.newest.value)

  /** @type {LoadedEntry[]} */
  #entries = []
  /** Counts what replaces the range: answers to earlier calls are dropped. */
  #version = 0
  #isLoading = false

  /**
   * Show the end of a log, or what is around one of its entries.
   *
   * @param {string} conversation its id
   * @param {number} [around]
   */
  async show(conversation, around) {
    const version = ++this.#version
    const end = this.newest.value
    const before = around ? Math.min(around + FIRST_PAGE, end + 1) : end + 1
    const found = await this.#read({ conversation, before, limit: around ? 2 * FIRST_PAGE : FIRST_PAGE })
    if (version !== this.#version) return
    batch(() => {
      this.#entries = []
      this.blocks.value = []
      this.first.value = before
      this.last.value = before - 1
      this.#prepend(found)
    })
  }

  /** @param {string} conversation */
  async loadOlder(conversation) {
    await this.#grow(async () => {
      const before = this.first.value
      if (before <= 1) return
      const found = await this.#read({ conversation, before, limit: PAGE })
      return () => {
        this.#prepend(found)
        this.#cutEnd()
      }
    })
  }

  /** @param {string} conversation */
  async loadNewer(conversation) {
    await this.#grow(async () => {
      if (this.hasEnd.value) return
      const found = await this.#read({ conversation, after: this.last.value, limit: PAGE })
      return () => {
        this.#append(found)
        this.#cutBeginning()
      }
    })
  }

  /**
   * Add an entry that was just stored.
   *
   * @param {EntryNotice} entry
   */
  receive(entry) {
    if (entry.seq <= this.newest.value) return false
    batch(() => {
      const isNext = this.hasEnd.value && (this.isFollowed || this.#entries.length < 2 * MOST)
      this.newest.value = entry.seq
      if (!isNext) return
      this.#append([entry])
      if (this.isFollowed) this.#cutBeginning()
    })
    return true
  }

  /**
   * @param {string} call
   * @param {string | null} status
   */
  noteProgress(call, status) {
    this.blocks.value = applyProgress(this.blocks.value, call, status)
  }

  /** @param {() => Promise<(() => void) | undefined>} load */
  async #grow(load) {
    if (this.#isLoading) return
    this.#isLoading = true
    const version = this.#version
    try {
      const apply = await load()
      if (apply && version === this.#version) batch(apply)
    } finally {
      this.#isLoading = false
    }
  }

  /** @param {{ conversation: string, before?: number, after?: number, limit: number }} range */
  async #read(range) {
    if (range.before !== undefined && range.before <= 1) return []
    return (await client.call("conversation.entries", range)).items
  }

  /** @param {LoadedEntry[]} found */
  #prepend(found) {
    const older = found.filter((entry) => entry.seq < this.first.value)
    this.#entries = [...older, ...this.#entries]
    // Results may be further on than their calls.
    const { blocks } = applyResults(older.flatMap(buildBlocks), this.#entries.flatMap(extractResults))
    this.blocks.value = [...blocks, ...this.blocks.value]
    this.first.value = older[0]?.seq ?? 1
  }

  /** @param {LoadedEntry[]} found */
  #append(found) {
    const newer = found.filter((entry) => entry.seq > this.last.value)
    this.#entries = [...this.#entries, ...newer]
    const added = [...this.blocks.value, ...newer.flatMap(buildBlocks)]
    this.blocks.value = applyResults(added, newer.flatMap(extractResults)).blocks
    this.last.value = newer.at(-1)?.seq ?? this.newest.value
    this.newest.value = Math.max(this.newest.value, this.last.value)
  }

  #cutBeginning() {
    if (this.#entries.length <= MOST + PAGE) return
    this.#keep(this.#entries.slice(-MOST))
  }

  #cutEnd() {
    if (this.#entries.length <= MOST + PAGE) return
    this.#keep(this.#entries.slice(0, MOST))
  }

  /** @param {LoadedEntry[]} entries */
  #keep(entries) {
    const first = entries[0]?.seq ?? 1
    const last = entries.at(-1)?.seq ?? 0
    this.#entries = entries
    this.blocks.value = this.blocks.value.filter((block) => first <= block.seq && block.seq <= last)
    this.first.value = first
    this.last.value = last
  }
}
