/** Icons, drawn by the colour of the text around them. */

import { html } from "../lib.js"

/** @type {Record<string, string>} */
const PATHS = {
  menu: "M4 7h16M4 12h16M4 17h16",
  plus: "M12 5v14M5 12h14",
  send: "M12 19V5M6 11l6-6 6 6",
  stop: "M7 7h10v10H7z",
  search: "M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14M20 20l-4-4",
  more: "M4.500 12a1 1 0 1 0 2 0 1 1 0 1 0-2 0M11 12a1 1 0 1 0 2 0 1 1 0 1 0-2 0M17.500 12a1 1 0 1 0 2 0 1 1 0 1 0-2 0",
  close: "M6 6l12 12M18 6L6 18",
  attach: "M20 11l-8.5 8.5a5 5 0 0 1-7-7L13 4a3.4 3.4 0 0 1 5 5l-8.6 8.5a1.7 1.7 0 0 1-2.4-2.4L15 7",
  copy: "M9 9h10v10H9zM5 15V5h10",
  edit: "M4 20h4L19 9l-4-4L4 16z",
  retry: "M19 8a8 8 0 1 0 1 6M20 4v5h-5",
  branch: "M6 4v10M6 20a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5M18 9a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5M18 9c0 5-6 5-11 7",
  check: "M5 13l4 4L19 7",
  chevron: "M9 6l6 6-6 6",
  tool: "M14.5 6a4 4 0 0 0-5 5L4 16.5 7.5 20l5.5-5.500a4 4 0 0 0 5-5L15 12l-3-3z",
  thought: "M12 4a6 6 0 0 1 3 11v2H9v-2a6 6 0 0 1 3-11M10 20h4",
  down: "M12 5v14M6 13l6 6 6-6",
  filter: "M4 6h16M7 12h10M10 18h4",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
}

/** @param {{ name: string, size?: number }} props */
export function Icon({ name, size = 18 }) {
  return html`<svg
    class="icon"
    width=${size}
    height=${size}
    viewBox="0 0 24 24"
    fill="none"
    stroke="currentColor"
    stroke-width="1.8"
    stroke-linecap="round"
    stroke-linejoin="round"
    aria-hidden="true"
  >
    <path d=${PATHS[name] ?? ""} />
  </svg>`
}
