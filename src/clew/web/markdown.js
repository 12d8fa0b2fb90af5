/**
 * Markdown as elements. HTML in a text stays text; what is made of it is sanitised, and nothing in
 * it is loaded from elsewhere: pictures are links.
 */

import DOMPurify from "./vendor/dompurify.js"
import MarkdownIt from "./vendor/markdown-it.js"

import { highlight } from "./highlighting.js"
import { readMaths } from "./maths_rules.js"

const TAGS = (
  "a blockquote br code del em h1 h2 h3 h4 h5 h6 hr li ol p pre s span strong table tbody td th thead tr ul"
).split(" ")
const ALLOWED_LINK = /^(?:https?|mailto):/i
/** Defines a link, for the whole text. */
const DEFINITION = /^\s{0,3}\[[^\]]+\]:/m
const LANGUAGE = /^[\w+#.-]{1,30}/

const parser = new MarkdownIt({ html: false, linkify: true, breaks: true })
readMaths(parser)
parser.validateLink = (url) => ALLOWED_LINK.test(url.trim())
parser.renderer.rules.image = (tokens, index) => {
  const token = tokens[index]
  if (!token) return ""
  const url = parser.utils.escapeHtml(String(token.attrGet("src") ?? ""))
  const name = parser.utils.escapeHtml(token.content || String(token.attrGet("src") ?? ""))
  return `<a href="${url}">${name}</a>`
}
parser.renderer.rules.fence = (tokens, index) => {
  const token = tokens[index]
  if (!token) return ""
  const language = LANGUAGE.exec(token.info.trim())?.[0] ?? ""
  const code = parser.utils.escapeHtml(token.content)
  return `<pre title="${parser.utils.escapeHtml(language)}"><code>${code}</code></pre>`
}

const OPTIONS = {
  ALLOWED_TAGS: TAGS,
  ALLOWED_ATTR: ["href", "title", "start"],
  ALLOWED_URI_REGEXP: ALLOWED_LINK,
  RETURN_DOM_FRAGMENT: true,
}

/**
 * The parts of a text that can be shown one after the other. While a text grows, all but the last
 * stay as they are.
 *
 * @param {string} source
 * @returns {string[]}
 */
export function splitBlocks(source) {
  const starts = parser
    .parse(source, {})
    .filter((token) => token.level === 0 && token.map && token.nesting >= 0)
    .map((token) => token.map?.[0] ?? 0)
  const lines = source.split("\n")
  // A definition of a link holds for all parts, so such a text is one part.
  if (starts.length < 2 || DEFINITION.test(source)) return [source]
  return starts.map((start, n) => lines.slice(n ? start : 0, starts[n + 1] ?? lines.length).join("\n"))
}

/**
 * The parts of a text that has grown: only what follows its last part is read again.
 *
 * @param {{ source: string, parts: string[] }} known
 * @param {string} source
 */
export function splitGrown(known, source) {
  const done = known.parts.slice(0, -1)
  if (!done.length || !source.startsWith(known.source)) return splitBlocks(source)
  const tail = source.slice(done.reduce((size, part) => size + part.length + 1, 0))
  const parts = splitBlocks(tail)
  return DEFINITION.test(tail) ? splitBlocks(source) : [...done, ...parts]
}

/**
 * Return the elements of a text.
 *
 * @param {string} source
 * @returns {DocumentFragment}
 */
export function renderMarkdown(source) {
  const made = /** @type {DocumentFragment} */ (
    /** @type {unknown} */ (DOMPurify.sanitize(parser.render(source), OPTIONS))
  )
  for (const found of made.querySelectorAll("a")) {
    found.target = "_blank"
    found.rel = "noopener noreferrer"
  }
  for (const table of made.querySelectorAll("table")) wrap(table, "table-scroll")
  for (const code of made.querySelectorAll("pre")) decorate(code)
  for (const code of made.querySelectorAll("code[title^=math]")) draw(code)
  return made
}

/** @param {Element} code */
async function draw(code) {
  const isDisplay = code.getAttribute("title") === "math display"
  code.removeAttribute("title")
  const { drawFormula } = await import("./maths.js")
  drawFormula(code, isDisplay)
}

/**
 * @param {Element} element
 * @param {string} name
 */
function wrap(element, name) {
  const box = document.createElement("div")
  box.className = name
  if (name === "table-scroll") box.tabIndex = 0
  element.replaceWith(box)
  box.append(element)
  return box
}

/** @param {HTMLPreElement} pre */
function decorate(pre) {
  const language = pre.title
  pre.removeAttribute("title")
  pre.tabIndex = 0
  const box = wrap(pre, "code-block")
  const bar = document.createElement("div")
  bar.className = "code-bar"
  const label = document.createElement("span")
  label.textContent = language
  bar.append(label, makeCopyButton(() => pre.textContent ?? ""))
  box.prepend(bar)
  const code = pre.querySelector("code")
  if (code && language) highlight(code, language)
}

/** @param {() => string} read */
function makeCopyButton(read) {
  const button = document.createElement("button")
  button.type = "button"
  button.className = "copy"
  button.textContent = "Copy"
  button.addEventListener("click", async () => {
    await navigator.clipboard?.writeText(read())
    button.textContent = "Copied"
    setTimeout(() => {
      button.textContent = "Copy"
    }, 1500)
  })
  return button
}
