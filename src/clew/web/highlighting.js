/** Colours of code; a language is loaded when it is first shown. */

const NAMES = new Set(
  (
    "bash c cpp css diff dockerfile go ini java javascript json markdown python rust sql typescript xml yaml"
  ).split(" "),
)
/** @type {Record<string, string>} */
const ALIASES = {
  sh: "bash", shell: "bash", zsh: "bash", console: "bash", "c++": "cpp", h: "c", hpp: "cpp", patch: "diff",
  docker: "dockerfile", golang: "go", toml: "ini", js: "javascript", mjs: "javascript", jsx: "javascript",
  md: "markdown", py: "python", python3: "python", rs: "rust", ts: "typescript", tsx: "typescript",
  html: "xml", svg: "xml", yml: "yaml",
}
/** Characters beyond which code stays plain: colours would take long. */
const MOST = 100_000
/** @type {typeof import("./vendor/highlight.js").default | null} */
let hljs = null

/**
 * The library with a language. Both are loaded once, by the browser.
 *
 * @param {string} name
 */
async function load(name) {
  const [library, language] = await Promise.all([import("./vendor/highlight.js"), import(`./vendor/highlight-${name}.js`)])
  hljs = library.default
  if (!hljs.getLanguage(name)) hljs.registerLanguage(name, language.default)
  return hljs
}

/**
 * Colour the text of an element, whose text it never changes.
 *
 * @param {HTMLElement} element
 * @param {string} language
 */
export async function highlight(element, language) {
  const name = ALIASES[language.toLowerCase()] ?? language.toLowerCase()
  const text = element.textContent ?? ""
  if (!NAMES.has(name) || text.length > MOST) return
  // Without a wait where it is known: no frame shows it without colours.
  const library = hljs?.getLanguage(name) ? hljs : await load(name)
  const emitter = library.highlight(text, { language: name, ignoreIllegals: true })._emitter
  element.replaceChildren(...makeNodes(emitter.rootNode.children))
}

/**
 * Elements from the tree of the library: no text is read as HTML again.
 *
 * @param {Array<string | { scope?: string, children: any[] }>} children
 * @returns {Array<Node>}
 */
function makeNodes(children) {
  return children.map((one) => {
    if (typeof one === "string") return document.createTextNode(one)
    const span = document.createElement("span")
    if (one.scope) span.className = one.scope.split(".").map((part) => `hl-${part}`).join(" ")
    span.append(...makeNodes(one.children))
    return span
  })
}
