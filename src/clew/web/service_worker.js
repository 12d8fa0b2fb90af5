/**
 * The page without a network, and notices while nobody looks at it.
 *
 * Only the page and its files are kept: nothing that the gateway answers is.
 */

/** @type {any} the scope of a service worker, which the library of documents does not know */
const worker = self
const CACHE = "clew"
const SHELL = "./"
const VERSION = /web\/([0-9a-f]{16})\//

worker.addEventListener("install", (/** @type {any} */ event) => {
  event.waitUntil(
    fetch(SHELL, { cache: "no-store" })
      .then(keepShell)
      .then(() => worker.skipWaiting()),
  )
})
worker.addEventListener("activate", (/** @type {any} */ event) => event.waitUntil(worker.clients.claim()))

worker.addEventListener("fetch", (/** @type {any} */ event) => {
  const { request } = event
  const url = new URL(request.url)
  if (request.method !== "GET" || url.origin !== location.origin) return
  if (request.mode === "navigate" && isShell(url)) event.respondWith(showShell(request))
  else if (VERSION.test(url.pathname)) event.respondWith(showFile(request))
})

/** @param {URL} url */
const isShell = (url) => url.pathname === new URL(SHELL, location.href).pathname

/**
 * Keep a page, and only the files of its version.
 *
 * @param {Response} answer
 */
async function keepShell(answer) {
  if (!answer.ok) return answer
  const text = await answer.clone().text()
  const version = VERSION.exec(text)?.[1]
  const cache = await caches.open(CACHE)
  await cache.put(SHELL, answer.clone())
  for (const kept of await cache.keys()) {
    const its = VERSION.exec(kept.url)?.[1]
    if (its && its !== version) await cache.delete(kept)
  }
  return answer
}

/** @param {Request} request */
async function showShell(request) {
  try {
    return await keepShell(await fetch(request))
  } catch (error) {
    const kept = await caches.match(SHELL)
    if (kept) return kept
    throw error
  }
}

/** @param {Request} request */
async function showFile(request) {
  const cache = await caches.open(CACHE)
  const kept = await cache.match(request)
  if (kept) return kept
  const answer = await fetch(request)
  if (answer.ok) await cache.put(request, answer.clone())
  return answer
}

/**
 * @typedef {object} PushNotice
 * @property {"answer" | "question" | "failure"} kind
 * @property {string} conversation
 * @property {string} title
 * @property {string} text
 * @property {string} [approval]
 * @property {boolean} [whole] whether the text is all that would be run
 */

const ICON = "web/icons/icon-192.png"
const HEADINGS = { answer: "", question: "Allow this? ", failure: "Failed: " }

worker.addEventListener("push", (/** @type {any} */ event) => event.waitUntil(tell(event.data.json())))

/** @param {PushNotice} notice */
async function tell(notice) {
  const pages = await worker.clients.matchAll({ type: "window", includeUncontrolled: true })
  // Whoever looks at the conversation sees it there.
  const name = encodeURIComponent(notice.conversation)
  if (pages.some((/** @type {any} */ page) => page.focused && page.url.includes(name))) return
  const actions = [
    { action: "approve", title: "Allow once" },
    { action: "deny", title: "Deny" },
  ]
  await worker.registration.showNotification(`${HEADINGS[notice.kind]}${notice.title}`, {
    body: notice.text,
    tag: notice.approval ?? notice.conversation,
    icon: ICON,
    data: notice,
    // Consent is given only to what is shown whole.
    actions: notice.kind === "question" && notice.whole ? actions : [],
    requireInteraction: notice.kind === "question",
  })
}

worker.addEventListener("notificationclick", (/** @type {any} */ event) => {
  event.notification.close()
  event.waitUntil(answer(event.notification.data, event.action))
})

/**
 * @param {PushNotice} notice
 * @param {string} action
 */
async function answer(notice, action) {
  if (!action || !notice.approval) return open(notice)
  const response = await fetch(`api/approvals/${encodeURIComponent(notice.approval)}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ approve: action === "approve" }),
  }).catch(() => null)
  if (response?.ok) return
  const told = await response?.json().catch(() => null)
  await worker.registration.showNotification("Not answered", {
    body: told?.error?.message ?? "The gateway cannot be reached. Open the conversation to answer.",
    tag: notice.approval,
    icon: ICON,
    data: { ...notice, approval: undefined },
  })
}

/** @param {PushNotice} notice */
async function open(notice) {
  const target = new URL(`#/c/${encodeURIComponent(notice.conversation)}`, worker.registration.scope).href
  const [page] = await worker.clients.matchAll({ type: "window" })
  if (!page) return worker.clients.openWindow(target)
  await page.focus()
  page.postMessage({ open: notice.conversation })
}
