/** What stands in place of something that was not read yet, or could not be. */

import { html } from "../lib.js"

/** @import { Resource } from "./resource.js" */

/** @param {{ resource: Resource<any> }} props */
export function Pending({ resource }) {
  return html`<p class="muted">${resource.trouble || "Loading"}</p>`
}
