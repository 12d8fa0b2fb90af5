/** The dashboard: the page that its address names, beside the list of conversations. */

import { keepFocus } from "./focus.js"
import { html, render, signal, useLayoutEffect } from "./lib.js"
import { startWorker } from "./notices.js"
import { NewPage } from "./pages/new.js"
import { lazy, loadRest } from "./parts/lazy.js"
import { Sidebar } from "./parts/sidebar.js"
import { isSidebarOpen } from "./parts/sidebar_button.js"
import { Toasts } from "./parts/toasts.js"
import { address, replace } from "./router.js"
import { beginSession, isLoginNeeded, takeCode } from "./session.js"
import { client, start } from "./stores/client.js"
import { reload } from "./stores/conversations.js"
import { question } from "./stores/dialog.js"
import { deliver } from "./stores/outbox.js"

const loginTrouble = signal("")
const EMPTY = html`<main class="page" aria-busy="true"></main>`
const ChatPage = lazy(async () => (await import("./pages/chat.js")).ChatPage, EMPTY)
const LineagePage = lazy(async () => (await import("./pages/lineage.js")).LineagePage, EMPTY)
const OperateRoute = lazy(async () => (await import("./pages/operate.js")).OperateRoute, EMPTY)
const LoginPage = lazy(async () => (await import("./pages/login.js")).LoginPage, EMPTY)
const Dialogs = lazy(async () => (await import("./parts/dialog.js")).Dialogs)

/** Pages by the first part of the address; others come in here. */
/** @type {Record<string, (rest: string[]) => any>} */
const PAGES = {
  new: () => html`<${NewPage} />`,
  c: ([name = "main", at]) => html`<${ChatPage} name=${name} at=${Number(at) || undefined} />`,
  history: ([name = "main"]) => html`<${LineagePage} name=${name} />`,
  operate: ([name = "jobs", ...rest]) => html`<${OperateRoute} name=${name} rest=${rest} />`,
}

function Link() {
  if (client.link.value !== "down") return null
  return html`<div class="banner" role="status">The gateway cannot be reached. What you write is kept and sent later.</div>`
}

/** The page before the gateway was ever reached: without a network, this is all that there is. */
function Unreached() {
  return html`<main class="login">
    <div class="login-box" role="status">
      <h1>Clew</h1>
      <p>The gateway cannot be reached. This page goes on as soon as it is back.</p>
    </div>
  </main>`
}

function App() {
  const [page = "new", ...rest] = address.value
  // Before anybody can see the page and go elsewhere.
  useLayoutEffect(() => {
    if (!PAGES[page]) replace("new")
  }, [page])
  if (isLoginNeeded.value === null) return html`<${Unreached} />`
  if (isLoginNeeded.value) return html`<${LoginPage} reason=${loginTrouble.value} />`
  return html`<div class="frame">
    <${Sidebar} />
    ${isSidebarOpen.value &&
    html`<div
      class="scrim"
      onClick=${() => {
        isSidebarOpen.value = false
      }}
    ></div>`}
    <div class="content">
      <${Link} />
      ${(PAGES[page] ?? PAGES.new)?.(rest)}
    </div>
    ${question.value && html`<${Dialogs} />`}
    <${Toasts} />
  </div>`
}

/** @param {KeyboardEvent} event */
function onKey(event) {
  if (event.key === "Escape" && isSidebarOpen.value) isSidebarOpen.value = false
  if (!(event.ctrlKey || event.metaKey) || event.altKey) return
  if (event.key === "k") {
    event.preventDefault()
    isSidebarOpen.value = true
    document.getElementById("search")?.focus()
  }
}

async function main() {
  const root = document.getElementById("app")
  addEventListener("keydown", onKey)
  keepFocus()
  loginTrouble.value = await takeCode()
  const session = await beginSession()
  const started = start(session)
  reload()
  // Until now the page shows what it came with.
  root?.replaceChildren()
  if (root) render(html`<${App} />`, root)
  deliver()
  // What a person waits for goes first: then the other parts, and the worker that keeps all files.
  await started.catch(() => {})
  loadRest()
  startWorker()
}

main()
