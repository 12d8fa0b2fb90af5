/** Parts of the page that are loaded once somebody needs them. */

import { html, signal, useEffect } from "../lib.js"
import { messageOf } from "../stores/client.js"

/** What waits: the styles of the parts, without which none is shown. */
let styles = Promise.resolve(/** @type {unknown} */ (null))

/** Load what was left for later: styles, and the modules of the parts, all at once. */
export function loadRest() {
  const links = /** @type {NodeListOf<HTMLLinkElement>} */ (document.querySelectorAll("link[rel^=later-]"))
  const loads = [...links].map((one) => {
    one.rel = one.rel.replace("later-", "")
    if (one.rel !== "stylesheet") return null
    return new Promise((resolve) => {
      one.onload = one.onerror = resolve
    })
  })
  if (loads.length) styles = Promise.all(loads)
}

/**
 * Make a component of one that is loaded when it is first shown.
 *
 * @param {() => Promise<any>} load
 * @param {any} [placeholder] shown until then
 */
export function lazy(load, placeholder) {
  const loaded = signal(/** @type {any} */ (null))
  const trouble = signal("")
  const start = async () => {
    loadRest()
    try {
      const [component] = await Promise.all([load(), styles])
      loaded.value = { component }
    } catch (error) {
      trouble.value = messageOf(error)
    }
  }
  /** @param {any} props */
  return function Lazy(props) {
    useEffect(() => {
      if (!loaded.value) start()
    }, [])
    if (loaded.value) return html`<${loaded.value.component} ...${props} />`
    if (!trouble.value) return placeholder ?? null
    return html`<p class="note error-text" role="alert">A part of the page could not be loaded: load the page again. ${trouble.value}</p>`
  }
}
