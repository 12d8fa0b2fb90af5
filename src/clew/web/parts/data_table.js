/** A table of records; where there is little room, each row is a card. */

import { html } from "../lib.js"

/**
 * @template T
 * @typedef {object} Column
 * @property {string} title
 * @property {(row: T) => any} cell
 * @property {"number" | "row-actions" | "wide"} [kind]
 */

/** @param {any} row */
const nameRow = ({ id, name }) => id ?? name

/**
 * @template T
 * @param {object} props
 * @param {string} props.label what the rows are, for screen readers
 * @param {Column<T>[]} props.columns
 * @param {T[]} props.rows
 * @param {(row: T) => string} [props.keyOf] its id or its name, if nothing is said
 * @param {string} props.empty what is said where there are none
 * @param {(row: T) => any} [props.detail] what follows a row over the whole width
 */
export function DataTable({ label, columns, rows, empty, detail, keyOf = nameRow }) {
  if (!rows.length) return html`<p class="empty">${empty}</p>`
  return html`<div class="table-frame">
    <table class="data" aria-label=${label}>
      <thead>
        <tr>
          ${columns.map(
            ({ title, kind = "" }) => html`<th scope="col" class=${kind} key=${title}>
              ${kind === "row-actions" ? html`<span class="sr-only">${title}</span>` : title}
            </th>`,
          )}
        </tr>
      </thead>
      <tbody>
        ${rows.map((row) => {
          const below = detail?.(row)
          return html`<tr key=${keyOf(row)}>
              ${columns.map(
                ({ title, cell, kind = "" }) => html`<td class=${kind} data-title=${title} key=${title}>
                  <div class="cell">${cell(row)}</div>
                </td>`,
              )}
            </tr>
            ${below && html`<tr class="detail" key=${`${keyOf(row)}-detail`}><td colspan=${columns.length}>${below}</td></tr>`}`
        })}
      </tbody>
    </table>
  </div>`
}
