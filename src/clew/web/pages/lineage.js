/** The page of a conversation's lineage: its sessions, compactions and branches, as a picture. */

import { formatMoment } from "../format.js"
import { html, useEffect, useState } from "../lib.js"
import { buildRows } from "../lineage.js"
import { Icon } from "../parts/icon.js"
import { SidebarButton } from "../parts/sidebar_button.js"
import { link } from "../router.js"
import { client, messageOf } from "../stores/client.js"

/** @import { LineageRow } from "../lineage.js" */
/** @import { ConversationShape, LineageShape } from "../rpc_types.d.ts" */

/** Pixels of a row, as the style sheet has them. */
const ROW = 56
const TRUNK = 18
const BESIDE = 46

/** @param {{ rows: LineageRow[] }} props */
function Picture({ rows }) {
  const trunk = rows.map((row, n) => ({ row, n })).filter(({ row }) => row.kind !== "branch")
  const end = trunk.at(-1)?.n ?? 0
  /** @param {number} n */
  const middle = (n) => n * ROW + ROW / 2
  const start = trunk[0]?.n ?? 0
  return html`<svg class="lineage-picture" width="64" height=${rows.length * ROW} aria-hidden="true" focusable="false">
    <path d=${`M${TRUNK} ${middle(start)}V${middle(end)}`} />
    ${rows.map((row, n) => {
      if (row.kind !== "branch") return null
      const from = middle(n) - ROW / 2
      return html`<path key=${row.key} d=${`M${TRUNK} ${from - 8}C${TRUNK} ${middle(n)} ${TRUNK + 6} ${middle(n)} ${BESIDE} ${middle(n)}`} />`
    })}
    ${rows.map((row, n) => {
      const x = row.kind === "branch" ? BESIDE : TRUNK
      const kind = row.isHead ? "head" : row.isCompaction ? "compaction" : row.kind
      return html`<a key=${row.key} href=${link(...row.address)} tabindex="-1">
        ${row.isCompaction
          ? html`<rect class=${kind} x=${x - 7} y=${middle(n) - 7} width="14" height="14" rx="3" />`
          : html`<circle class=${kind} cx=${x} cy=${middle(n)} r="7" />`}
      </a>`
    })}
  </svg>`
}

/** @param {LineageRow} row */
function describe(row) {
  if (row.kind === "origin") return row.address[2] ? `Branched from here, at message ${row.address[2]}` : "Came from here"
  if (row.kind === "branch") return `Branch at message ${row.seq}`
  return row.isHead ? `Current, from message ${row.seq}` : `From message ${row.seq}`
}

/** @param {{ name: string }} props an id */
export function LineagePage({ name }) {
  const [found, setFound] = useState(/** @type {{ lineage: LineageShape, conversation: ConversationShape } | null} */ (null))
  const [trouble, setTrouble] = useState("")
  useEffect(() => {
    setFound(null)
    Promise.all([
      client.call("conversation.lineage", { conversation: name }),
      client.call("conversation.status", { conversation: name }),
    ]).then(
      ([lineage, { conversation }]) => setFound({ lineage, conversation }),
      (error) => setTrouble(messageOf(error)),
    )
  }, [name])
  const title = found?.conversation.title ?? "Untitled"
  useEffect(() => {
    document.title = `History of ${title} · Clew`
  }, [title])
  const rows = found ? buildRows(found.lineage, found.conversation.entries) : []
  return html`<main class="page">
    <header class="header">
      <${SidebarButton} label="Conversations" />
      <h1>History of “${title}”</h1>
      <a class="lineage" href=${link("c", name)}><${Icon} name="close" size="14" />close</a>
    </header>
    <div class="lineage-area">
      ${trouble && html`<p class="error-text" role="alert">${trouble}</p>`}
      ${found &&
      html`${found.conversation.imported_from && html`<p class="muted">Imported from ${found.conversation.imported_from}</p>`}
      <div class="lineage-rows">
        <${Picture} rows=${rows} />
        <ol>
          ${rows.map(
            (row) => html`<li key=${row.key} class=${row.kind}>
              <a href=${link(...row.address)} aria-current=${row.isHead ? "step" : undefined}>
                <span class="lineage-title">${row.title}</span>
                <span class="muted">${describe(row)} · ${formatMoment(row.at)}</span>
              </a>
            </li>`,
          )}
        </ol>
      </div>`}
    </div>
  </main>`
}
