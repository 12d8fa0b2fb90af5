/** Entries of the log as blocks: one message may be a text, thinking and tool calls. Pure. */

/** @import { EntryNotice, EntryShape, FileShape, SpanShape } from "./rpc_types.d.ts" */
/** @typedef {Pick<FileShape, "id" | "name" | "media_type" | "size" | "caption" | "path">} SentFile */
/** @typedef {"asked" | "running" | "done" | "failed" | "denied"} Progress */
/**
 * @typedef {object} ToolCall
 * @property {string} call
 * @property {string} name
 * @property {string} args JSON
 * @property {Progress} progress
 * @property {string} result
 * @property {string} [endedAt]
 */
/**
 * @typedef {object} Block
 * @property {string} key
 * @property {"user" | "answer" | "thinking" | "tool" | "note"} kind
 * @property {number} seq
 * @property {string} text
 * @property {string} turn
 * @property {string} session
 * @property {string} at
 * @property {ToolCall} [tool]
 * @property {string[]} [pictures] as data URLs
 * @property {string[]} [files] their names
 * @property {SentFile[]} [sent] that go with an answer
 */
/** @typedef {Pick<EntryShape, "seq" | "kind" | "session" | "turn" | "role" | "text" | "message" | "created_at"> | EntryNotice} Entry */
/** @typedef {{ call: string, text: string, progress: Progress, at: string }} CallResult */

const PICTURE = /^image\/(?:png|jpeg|gif|webp)$/
const RESULTS = new Set(["tool-return", "retry-prompt", "retry-feedback"])
/** How results that are none begin, as the model is told. */
const FAILED = /^(?:error|cancelled|interrupted, outcome unknown): /
const DENIED = /^not approved: /
/** @type {Progress[]} */
const ORDER = ["asked", "running", "done", "failed", "denied"]

/** @param {any} message */
const partsOf = (message) => (Array.isArray(message?.parts) ? message.parts : [])

/** @param {unknown} value */
const toText = (value) =>
  value == null ? "" : typeof value === "string" ? value : JSON.stringify(value)

/**
 * The blocks of an entry; tool results belong to the blocks of their calls.
 *
 * @param {Entry} entry
 * @returns {Block[]}
 */
export function buildBlocks(entry) {
  if (entry.kind === "event") return entry.text ? [makeBlock(entry, "note", entry.text)] : []
  if (entry.kind === "attempt") {
    return entry.text ? [makeBlock(entry, "note", `No answer: ${entry.text}`)] : []
  }
  if (entry.role === "user") {
    const isCaused = Boolean(entry.message?.metadata?.clew_cause)
    const block = makeBlock(entry, isCaused ? "note" : "user", entry.text)
    return [{ ...block, ...findFiles(entry.message) }]
  }
  return entry.role === "assistant" ? responseBlocks(entry) : []
}

/** @param {Entry} entry */
function responseBlocks(entry) {
  const sent = ("files" in entry && entry.files) || []
  if (!sent.length) return textBlocks(entry)
  return [...textBlocks(entry), { ...makeBlock(entry, "answer", "", "files"), sent }]
}

/** @param {Entry} entry */
function textBlocks(entry) {
  const parts = partsOf(entry.message)
  if (!parts.length) return entry.text ? [makeBlock(entry, "answer", entry.text)] : []
  /** @type {Block[]} */
  const blocks = []
  parts.forEach((/** @type {any} */ part, /** @type {number} */ n) => {
    // An entry without text is a placeholder for a missing answer.
    if (part.part_kind === "text" && part.content && entry.text) {
      blocks.push(makeBlock(entry, "answer", String(part.content), n))
    } else if (part.part_kind === "thinking" && part.content) {
      blocks.push(makeBlock(entry, "thinking", String(part.content), n))
    } else if (part.part_kind === "tool-call" || part.part_kind === "builtin-tool-call") {
      blocks.push({ ...makeBlock(entry, "tool", "", n), tool: makeCall(part) })
    }
  })
  return blocks
}

/**
 * @param {any} part
 * @returns {ToolCall}
 */
function makeCall(part) {
  return {
    call: String(part.tool_call_id ?? ""),
    name: String(part.tool_name ?? ""),
    args: toText(part.args),
    progress: "asked",
    result: "",
  }
}

/**
 * @param {Entry} entry
 * @param {Block["kind"]} kind
 * @param {string} text
 * @returns {Block}
 */
function makeBlock(entry, kind, text, /** @type {number | string} */ number = 0) {
  return {
    key: `${entry.seq}.${number}`,
    kind,
    seq: entry.seq,
    text,
    turn: entry.turn ?? "",
    session: entry.session,
    at: entry.created_at,
  }
}

/** @param {any} message */
function findFiles(message) {
  /** @type {string[]} */
  const pictures = []
  /** @type {string[]} */
  const files = []
  for (const part of partsOf(message)) {
    for (const one of Array.isArray(part.content) ? part.content : []) {
      if (one?.kind !== "binary" || typeof one.data !== "string") continue
      if (PICTURE.test(one.media_type)) pictures.push(toDataUrl(one.media_type, one.data))
      else files.push(String(one.identifier ?? one.media_type))
    }
  }
  return { pictures, files }
}

/**
 * @param {string} type
 * @param {string} data base64, as URLs have it or not
 */
function toDataUrl(type, data) {
  return `data:${type};base64,${data.replaceAll("-", "+").replaceAll("_", "/")}`
}

/**
 * The tool results in an entry.
 *
 * @param {Entry} entry
 * @returns {CallResult[]}
 */
export function extractResults(entry) {
  if (entry.kind !== "message" || entry.role === "assistant") return []
  return partsOf(entry.message)
    .filter((/** @type {any} */ part) => RESULTS.has(part.part_kind) && part.tool_call_id)
    .map((/** @type {any} */ part) => {
      const text = toText(part.content)
      const isFailed = part.part_kind === "retry-prompt" || part.outcome === "failed" || FAILED.test(text)
      const isDenied = part.outcome === "denied" || DENIED.test(text)
      const progress = isDenied ? "denied" : isFailed ? "failed" : "done"
      return { call: String(part.tool_call_id), text, progress, at: entry.created_at }
    })
}

/**
 * The blocks with the results of their calls, and the results whose calls are not there.
 *
 * @param {Block[]} blocks
 * @param {CallResult[]} results
 * @returns {{ blocks: Block[], strays: CallResult[] }}
 */
export function applyResults(blocks, results) {
  if (!results.length) return { blocks, strays: [] }
  const made = [...blocks]
  const strays = results.filter((result) => {
    const n = findCall(made, result.call)
    const block = made[n]
    if (!block?.tool) return true
    const { text, progress, at } = result
    made[n] = { ...block, tool: { ...block.tool, result: text, progress, endedAt: at } }
    return false
  })
  return { blocks: made, strays }
}

/**
 * The blocks with the progress of a call, which never goes back.
 *
 * @param {Block[]} blocks
 * @param {string} call
 * @param {string | null} status
 * @returns {Block[]}
 */
export function applyProgress(blocks, call, status) {
  const n = findCall(blocks, call)
  const block = blocks[n]
  if (!block?.tool) return blocks
  const told = status === null ? "running" : status === "ok" ? "done" : status === "denied" ? "denied" : "failed"
  if (ORDER.indexOf(told) <= ORDER.indexOf(block.tool.progress)) return blocks
  return blocks.with(n, { ...block, tool: { ...block.tool, progress: told } })
}

/**
 * @param {Block[]} blocks
 * @param {string} call
 */
function findCall(blocks, call) {
  return blocks.findLastIndex((block) => block.tool?.call === call)
}

/**
 * Whether an entry was rewound.
 *
 * @param {number} seq
 * @param {SpanShape[]} spans
 */
export function isRewound(seq, spans) {
  return spans.some((span) => span.first <= seq && seq <= span.last)
}
