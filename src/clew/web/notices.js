/** Notices while nobody looks at the page, and the page without a network. */

import { signal } from "./lib.js"
import { go } from "./router.js"
import { request } from "./session.js"

const WORKER = "service-worker.js"

/** Whether this browser gets notices; `null` where it cannot. */
export const hasNotices = signal(/** @type {boolean | null} */ (null))
/** @type {ServiceWorkerRegistration | null} */
let registration = null

/** The one script that may become a worker. */
function workerUrl() {
  const types = /** @type {any} */ (globalThis).trustedTypes
  if (!types) return WORKER
  const policy = types.createPolicy("service-worker", {
    createScriptURL: (/** @type {string} */ url) => {
      if (url !== WORKER) throw new TypeError(`${url} is no worker of this page`)
      return url
    },
  })
  return policy.createScriptURL(WORKER)
}

/** Have the browser keep the page, and find out whether it gets notices. */
export async function startWorker() {
  if (!("serviceWorker" in navigator)) return
  navigator.serviceWorker.addEventListener("message", (event) => {
    if (event.data?.open) go("c", event.data.open)
  })
  try {
    registration = await navigator.serviceWorker.register(workerUrl())
    if (!("pushManager" in registration) || !("Notification" in globalThis)) return
    hasNotices.value = (await registration.pushManager.getSubscription()) !== null
  } catch {
    // Private windows have no workers: the page goes on without.
  }
}

/** Ask for notices; a person has pressed a button for it. */
export async function turnOn() {
  if (!registration) throw new Error("this browser gets no notices")
  if ((await Notification.requestPermission()) !== "granted") {
    throw new Error("the browser does not allow notices from this page: allow them in its settings")
  }
  const { key } = await request("api/push")
  const subscription = await registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key })
  await request("api/push", { body: subscription.toJSON() })
  hasNotices.value = true
}

/** Get no more notices here. */
export async function turnOff() {
  const subscription = await registration?.pushManager.getSubscription()
  if (subscription) {
    await request("api/push", { method: "DELETE", body: subscription.toJSON() })
    await subscription.unsubscribe()
  }
  hasNotices.value = false
}
