/**
 * Formulas in Markdown: `$a$`, `$$a$$`, `\\(a\\)` and `\\[a\\]`, whose text no other rule reads.
 *
 * As pandoc has it, a `$` begins a formula only before a character that is no space, and ends one
 * only after such a character and before none that is a digit; none is within it, and no code: `$5 and $10` is money.
 */

/** @typedef {{ open: string, close: string, isDisplay: boolean }} Fence */

/** @type {Fence[]} */
const FENCES = [
  { open: "$$", close: "$$", isDisplay: true },
  { open: "\\[", close: "\\]", isDisplay: true },
  { open: "\\(", close: "\\)", isDisplay: false },
  { open: "$", close: "$", isDisplay: false },
]
const SPACE = /\s/
const DIGIT = /\d/

/**
 * Where a formula that begins here ends, or -1.
 *
 * @param {string} text
 * @param {number} start after what opens it
 * @param {Fence} fence
 */
function findEnd(text, start, { close }) {
  const isDollar = close === "$"
  if (isDollar && (SPACE.test(text[start] ?? " ") || text[start] === "$")) return -1
  for (let at = text.indexOf(close, start); at > start; at = text.indexOf(close, at + 1)) {
    if (close.startsWith("$") && text[at - 1] === "\\") continue
    const isMoney = SPACE.test(text[at - 1] ?? "") || DIGIT.test(text[at + 1] ?? "")
    return isDollar && (isMoney || text.slice(start, at).includes("`")) ? -1 : at
  }
  return -1
}

/**
 * @param {any} state
 * @param {boolean} isSilent
 */
function readInline(state, isSilent) {
  const fence = FENCES.find(({ open }) => state.src.startsWith(open, state.pos))
  if (!fence) return false
  const start = state.pos + fence.open.length
  const end = findEnd(state.src, start, fence)
  if (end < 0 || end > state.posMax) return false
  if (!isSilent) {
    const token = state.push("math", "", 0)
    token.content = state.src.slice(start, end)
    token.info = fence.isDisplay ? "display" : ""
  }
  state.pos = end + fence.close.length
  return true
}

/**
 * @param {any} state
 * @param {number} first
 * @param {number} last
 * @param {boolean} isSilent
 */
function readBlock(state, first, last, isSilent) {
  const begin = state.bMarks[first] + state.tShift[first]
  const fence = FENCES.find(({ open, isDisplay }) => isDisplay && state.src.startsWith(open, begin))
  if (!fence || state.sCount[first] - state.blkIndent >= 4) return false
  const start = begin + fence.open.length
  const end = state.src.indexOf(fence.close, start)
  const line = state.eMarks.findIndex((/** @type {number} */ mark) => mark >= end)
  // Only where nothing else stands on its last line.
  const rest = end < 0 ? "x" : state.src.slice(end + fence.close.length, state.eMarks[line])
  if (end < 0 || line >= last || rest.trim()) return false
  if (isSilent) return true
  const token = state.push("math", "", 0)
  Object.assign(token, { block: true, content: state.src.slice(start, end), info: "display", map: [first, line + 1] })
  state.line = line + 1
  return true
}

/**
 * Have a parser of Markdown read formulas.
 *
 * @param {any} parser
 */
export function readMaths(parser) {
  parser.inline.ruler.before("escape", "math", readInline)
  parser.block.ruler.before("fence", "math", readBlock, { alt: ["paragraph", "blockquote", "list"] })
  parser.renderer.rules.math = (/** @type {any[]} */ tokens, /** @type {number} */ index) => {
    const { content, info } = tokens[index]
    return `<code title="math ${info}">${parser.utils.escapeHtml(content.trim())}</code>`
  }
}
