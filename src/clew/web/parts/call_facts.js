/** What the gateway knows of a tool call: its time, its effect, and why it ran or did not. */

import { EFFECTS } from "../effects.js"
import { formatDuration, formatMoment, showHidden } from "../format.js"
import { html, useEffect, useState } from "../lib.js"
import { client } from "../stores/client.js"

/** @import { CallShape } from "../rpc_types.d.ts" */
/** @import { Block } from "../entries.js" */

/** @param {{ block: Block, conversation: string }} props */
export function CallFacts({ block, conversation }) {
  const [found, setFound] = useState(/** @type {CallShape | null} */ (null))
  const call = block.tool?.call ?? ""
  const progress = block.tool?.progress
  useEffect(() => {
    if (!block.turn || progress === "asked") return
    client.call("conversation.call", { conversation, turn: block.turn, call }).then(setFound, () => setFound(null))
  }, [call, progress])
  if (!found) return null
  const took = found.finished_at ? Date.parse(found.finished_at) - Date.parse(found.started_at) : null
  const runs = found.runs > 1 ? ` · started ${found.runs} times` : ""
  return html`<dl class="call-facts">
    <dt>Time</dt>
    <dd>${formatMoment(found.started_at)}${took === null ? "" : ` · ${formatDuration(took)}`}${runs}</dd>
    <dt>Effect</dt>
    <dd>${EFFECTS[found.effect]}</dd>
    ${found.why && html`<dt>${found.status === "denied" ? "Denied" : "Allowed"}</dt><dd>${showHidden(found.why)}</dd>`}
  </dl>`
}
