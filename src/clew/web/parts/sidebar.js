/** The list of conversations, with search. */

import { formatWhen } from "../format.js"
import { html, useEffect, useState } from "../lib.js"
import { hasNotices, turnOff, turnOn } from "../notices.js"
import { address, go, link } from "../router.js"
import { logOut } from "../session.js"
import { agent, client } from "../stores/client.js"
import {
  askForTitle,
  conversations,
  hasMore,
  hasMoreHits,
  hits,
  isListed,
  isLoading,
  loadMore,
  loadMoreHits,
  query,
  reload,
  remove,
  search,
  searchTrouble,
} from "../stores/conversations.js"
import { isFiltered } from "../stores/filters.js"
import { attempt, showToast } from "../stores/toasts.js"
import { Icon } from "./icon.js"
import { lazy } from "./lazy.js"
import { Menu } from "./menu.js"
import { isSidebarOpen } from "./sidebar_button.js"

/** @import { ConversationShape, HitShape } from "../rpc_types.d.ts" */

const RELOAD_EVERY = 30_000
const FilterRow = lazy(async () => (await import("./filters.js")).FilterRow)
const OperateNav = lazy(async () => (await import("./operate_nav.js")).OperateNav)

/** @param {{ conversation: ConversationShape, isCurrent: boolean }} props */
function Row({ conversation, isCurrent }) {
  const title = conversation.title ?? "Untitled"
  const ask = () => askForTitle(conversation.id, conversation.title ?? "")
  const drop = async () => {
    await remove(conversation)
    if (isCurrent) go("new")
  }
  return html`<li class=${isCurrent ? "row current" : "row"}>
    <a
      href=${link("c", conversation.id)}
      aria-current=${isCurrent ? "page" : undefined}
      onClick=${() => {
        isSidebarOpen.value = false
      }}
    >
      <span class="row-title">${title}</span>
      <span class="row-when">${formatWhen(conversation.updated_at)}</span>
    </a>
    <${Menu}
      label=${`Actions for ${title}`}
      items=${[
        { label: "Rename", icon: "edit", run: ask },
        { label: "Delete", icon: "trash", run: drop, isDangerous: true },
      ]}
    />
  </li>`
}

/**
 * The words that were found, marked.
 *
 * @param {{ hit: HitShape }} props
 */
function Hit({ hit }) {
  const parts = hit.snippet.split(/[\[\]]/)
  return html`<li class="row hit">
    <a
      href=${link("c", hit.conversation, String(hit.seq))}
      onClick=${() => {
        isSidebarOpen.value = false
      }}
    >
      <span class="row-title">${hit.title ?? "Untitled"}</span>
      <span class="row-snippet">${parts.map((part, n) => (n % 2 ? html`<mark>${part}</mark>` : part))}</span>
    </a>
  </li>`
}

function ConversationList() {
  useEffect(() => {
    // The page has asked for the first list before it was shown.
    if (isListed.value) reload()
    const timer = setInterval(() => {
      if (!document.hidden && client.link.value === "up") reload()
    }, RELOAD_EVERY)
    return () => clearInterval(timer)
  }, [])
  const current = address.value[0] === "c" ? address.value[1] : null
  const [isFiltering, setFiltering] = useState(isFiltered.value)
  const isSearching = query.value.trim() !== "" || isFiltered.value
  return html`<div class="sidebar-head">
      <a class="brand" href="#/new">Clew</a>
      <a
        class="icon-button"
        href="#/new"
        title="New conversation"
        aria-label="New conversation"
        onClick=${() => {
          isSidebarOpen.value = false
        }}
      >
        <${Icon} name="plus" />
      </a>
    </div>
    <div class="search">
      <${Icon} name="search" size="16" />
      <input
        id="search"
        type="search"
        placeholder="Search"
        aria-label="Search conversations and messages"
        value=${query.value}
        onInput=${(/** @type {any} */ event) => search(event.currentTarget.value)}
      />
      <button
        type="button"
        class=${isFiltered.value ? "icon-button small active" : "icon-button small"}
        aria-label=${isFiltered.value ? "Filter, in use" : "Filter"}
        title="Filter"
        aria-expanded=${isFiltering}
        onClick=${() => setFiltering(!isFiltering)}
      >
        <${Icon} name="filter" size="16" />
      </button>
    </div>
    ${isFiltering && html`<${FilterRow} />`}
    <div class="rows" aria-busy=${isLoading.value}>
      ${isLoading.value && html`<p class="empty" role="status">${isSearching ? "Searching…" : "Loading…"}</p>`}
      <ul>
        ${conversations.value.map(
          (one) => html`<${Row} key=${one.id} conversation=${one} isCurrent=${one.id === current} />`,
        )}
      </ul>
      ${hits.value.length > 0 &&
      html`<h2 class="rows-head">Messages</h2>
        <ul>
          ${hits.value.map((hit) => html`<${Hit} key=${`${hit.conversation}.${hit.seq}`} hit=${hit} />`)}
        </ul>
        ${hasMoreHits.value &&
        html`<button type="button" class="quiet-button more" onClick=${loadMoreHits}>Show more messages</button>`}`}
      ${searchTrouble.value && html`<p class="empty" role="status">Messages are not searched: ${searchTrouble.value}</p>`}
      ${isListed.value &&
      !conversations.value.length &&
      !hits.value.length &&
      !searchTrouble.value &&
      html`<p class="empty">${isSearching ? "Nothing found" : "No conversations yet"}</p>`}
      ${hasMore.value && html`<button type="button" class="quiet-button more" onClick=${loadMore}>Show more</button>`}
    </div>`
}

/** What concerns this browser. */
function makeMenu() {
  const leave = { label: "Sign out", run: logOut }
  if (hasNotices.value === null) return [leave]
  const change = async () => {
    await (hasNotices.value ? turnOff() : turnOn())
    showToast(hasNotices.value ? "This browser tells you of answers and questions" : "This browser tells you nothing any more")
  }
  return [{ label: hasNotices.value ? "Turn notices off" : "Turn notices on", run: () => attempt(change) }, leave]
}

export function Sidebar() {
  const isOperating = address.value[0] === "operate"
  const close = () => {
    isSidebarOpen.value = false
  }
  return html`<nav
    class=${isSidebarOpen.value ? "sidebar open" : "sidebar"}
    aria-label=${isOperating ? "Pages" : "Conversations"}
  >
    ${isOperating ? html`<${OperateNav} />` : html`<${ConversationList} />`}
    <div class="sidebar-foot">
      <span class="muted">${agent.value ? `${agent.value.offline ? "offline model" : agent.value.model}` : ""}</span>
      ${isOperating
        ? html`<a class="foot-link" href=${link("new")} onClick=${close}>Chat</a>`
        : html`<a class="foot-link" href=${link("operate", "jobs")}>Operate</a>`}
      <${Menu} label="More" items=${makeMenu()} />
    </div>
  </nav>`
}
