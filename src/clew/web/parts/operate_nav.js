/** The list of pages for operators, in place of the list of conversations. */

import { html, signal, useEffect, useLayoutEffect } from "../lib.js"
import { OPERATE_GROUPS } from "../operate/pages.js"
import { address, link } from "../router.js"
import { client } from "../stores/client.js"
import { isSidebarOpen } from "./sidebar_button.js"

/** The methods of this gateway; all until it has said so. */
const methods = signal(/** @type {Set<string> | null} */ (null))

export function OperateNav() {
  useEffect(() => {
    client.call("rpc.discover").then(
      (told) => {
        methods.value = new Set(told.methods.map((one) => one.name))
      },
      () => {},
    )
  }, [])
  const current = address.value[1] ?? "jobs"
  // The list may be longer than the screen: who comes by an address sees where they are.
  useLayoutEffect(() => {
    document.querySelector(".sidebar .row.current")?.scrollIntoView({ block: "nearest" })
  }, [current, methods.value])
  const groups = OPERATE_GROUPS.map(({ title, pages }) => ({
    title,
    pages: pages.filter((one) => methods.value?.has(one.needs) ?? true),
  })).filter(({ pages }) => pages.length)
  return html`<div class="sidebar-head"><a class="brand" href="#/new">Clew</a></div>
    <div class="rows">
      ${groups.map(
        ({ title, pages }) => html`<h2 class="rows-head" key=${title}>${title}</h2>
          <ul>
            ${pages.map(
              (one) => html`<li class=${one.name === current ? "row current" : "row"} key=${one.name}>
                <a
                  href=${link("operate", one.name)}
                  aria-current=${one.name === current ? "page" : undefined}
                  onClick=${() => {
                    isSidebarOpen.value = false
                  }}
                >
                  <span class="row-title">${one.title}</span>
                </a>
              </li>`,
            )}
          </ul>`,
      )}
    </div>`
}
