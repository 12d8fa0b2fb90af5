/** Messages that did not arrive on their channel: send them again, or give them up. */

import { showHidden } from "../format.js"
import { html, useState } from "../lib.js"
import { ActionButton } from "../parts/action_button.js"
import { Choice } from "../parts/choice.js"
import { ConversationLink } from "../parts/conversation_link.js"
import { DataTable } from "../parts/data_table.js"
import { Moment } from "../parts/moment.js"
import { OperatePage } from "../parts/operate_page.js"
import { useResource } from "../parts/resource.js"
import { State } from "../parts/state.js"
import { go } from "../router.js"
import { client } from "../stores/client.js"
import { openDialog } from "../stores/dialog.js"
import { showToast } from "../stores/toasts.js"

/** @import { DeliveryShape } from "../rpc_types.d.ts" */
/** @import { Column } from "../parts/data_table.js" */
/** @typedef {"failed" | "open" | "all"} Shown */

const PAGE_SIZE = 50
const MOST = 1000
const EMPTY = {
  failed: "Nothing was given up.",
  open: "Nothing is on its way.",
  all: "Everything has arrived.",
}

/**
 * @param {DeliveryShape} delivery
 * @param {() => Promise<void>} reload
 */
const giveUp = (delivery, reload) =>
  openDialog({
    title: "Give this message up?",
    text: "It is not sent any more. You can send it again later.",
    confirm: "Give up",
    isDangerous: true,
    run: async () => {
      await client.call("delivery.give_up", { delivery: delivery.id })
      await reload()
    },
  })

/** @param {{ delivery: DeliveryShape, reload: () => Promise<void> }} props */
function DeliveryActions({ delivery, reload }) {
  const about = delivery.text.slice(0, 40)
  if (delivery.open) {
    return html`<button type="button" aria-label=${`Give up: ${about}`} onClick=${() => giveUp(delivery, reload)}>Give up</button>`
  }
  const retry = async () => {
    await client.call("delivery.retry", { delivery: delivery.id })
    showToast("It is sent again")
    await reload()
  }
  return html`<${ActionButton} label="Send again" about=${about} run=${retry} />`
}

/**
 * The part of a route that a person knows: the chat, and the thread.
 *
 * @param {string} route
 */
const describeChat = (route) => showHidden(route.split(":").slice(3).map(decodeURIComponent).join(" "))

/** @param {{ rest: string[] }} props */
export function Page({ rest: [channel = ""] }) {
  const [shown, setShown] = useState(/** @type {Shown} */ (channel ? "all" : "failed"))
  const [limit, setLimit] = useState(PAGE_SIZE)
  const deliveries = useResource(
    () => client.call("delivery.list", { state: shown, channel: channel || null, limit }),
    { every: 5000, on: [shown, channel, limit] },
  )
  const channels = useResource(() => client.call("channel.list"))
  const names = new Set([...(channels.value?.items.map((one) => one.name) ?? []), ...(channel ? [channel] : [])])
  /** @type {Column<DeliveryShape>[]} */
  const columns = [
    { title: "Message", kind: "wide", cell: (one) => html`<div class="clipped">${one.text || `(${one.kind})`}</div>` },
    { title: "To", cell: (one) => html`<span>${one.channel}<div class="hint">${describeChat(one.route)}</div></span>` },
    {
      title: "State",
      cell: (one) => html`<div>
        <${State} name=${one.open ? one.state : "given_up"} why=${one.error && showHidden(one.error)} />
        <div class="hint">${one.attempts === 1 ? "1 attempt" : `${one.attempts} attempts`}</div>
      </div>`,
    },
    { title: "Since", cell: (one) => html`<${Moment} at=${one.changed_at} />` },
    { title: "Conversation", cell: (one) => html`<${ConversationLink} id=${one.conversation} text="open" />` },
    {
      title: "Actions",
      kind: "row-actions",
      cell: (one) => html`<${DeliveryActions} delivery=${one} reload=${deliveries.reload} />`,
    },
  ]
  return html`<${OperatePage} title="Deliveries" about="Messages that did not arrive on their channel." resource=${deliveries}>
    <div class="toolbar">
      <${Choice}
        label="Show"
        value=${shown}
        choices=${[["failed", "Given up"], ["open", "On their way"], ["all", "Both"]]}
        set=${setShown}
      />
      <${Choice}
        label="Channel"
        value=${channel}
        choices=${[["", "All"], ...[...names].map((name) => [name, name])]}
        set=${(/** @type {string} */ name) => go("operate", "deliveries", ...(name ? [name] : []))}
      />
    </div>
    <${DataTable}
      label="Deliveries"
      empty=${EMPTY[shown]}
      rows=${deliveries.value?.items ?? []}
      columns=${columns}
    />
    ${deliveries.value?.next &&
    (limit < MOST
      ? html`<button type="button" onClick=${() => setLimit(Math.min(MOST, limit * 2))}>Show more</button>`
      : html`<p class="hint">There are more: <code>clew deliveries list</code> has all of them.</p>`)}
  <//>`
}
