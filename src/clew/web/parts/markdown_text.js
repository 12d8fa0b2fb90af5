/** A Markdown text; while it grows, only its last part is made again. */

import { html, useLayoutEffect, useMemo, useRef } from "../lib.js"
import { renderMarkdown, splitGrown } from "../markdown.js"

/** @param {{ source: string }} props */
function MarkdownBlock({ source }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null))
  useLayoutEffect(() => box.current?.replaceChildren(renderMarkdown(source)), [source])
  return html`<div ref=${box}></div>`
}

/** @param {{ source: string, isLive?: boolean }} props */
export function MarkdownText({ source, isLive = false }) {
  const known = useRef({ source: "", parts: /** @type {string[]} */ ([]) })
  const parts = useMemo(() => (isLive ? splitGrown(known.current, source) : [source]), [source, isLive])
  known.current = { source, parts }
  return html`<div class="markdown">
    ${parts.map((part, n) => html`<${MarkdownBlock} key=${n} source=${part} />`)}
  </div>`
}
