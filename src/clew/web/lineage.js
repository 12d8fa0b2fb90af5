/** The lineage of a conversation as rows of a picture. Pure. */

/** @import { LineageSessionShape, LineageShape } from "./rpc_types.d.ts" */
/**
 * @typedef {object} LineageRow
 * @property {string} key
 * @property {"origin" | "session" | "branch"} kind
 * @property {string} title
 * @property {string} at when it began
 * @property {string[]} address the page to which it leads
 * @property {boolean} isCompaction
 * @property {boolean} isHead
 * @property {number} seq
 */
/**
 * @typedef {object} Compaction
 * @property {string} session
 * @property {number} seq the last entry before it
 * @property {string} summary
 * @property {number | null} keptFrom
 * @property {boolean} isUndone
 * @property {boolean} isHead
 */

/** @type {Record<string, string>} */
const WORDS = {
  start: "Began",
  compression: "Older messages summarised",
  restore: "Summary undone",
  rewind: "Rewound",
  forget: "Something was forgotten",
  reload: "Instructions read again",
  reopen: "Opened again",
  branch: "Branched",
  import: "Imported",
  reset: "Begun anew",
  idle: "Begun anew after a pause",
  daily: "Begun anew for the day",
}

/**
 * The rows from the origin to the newest session; branches follow the session that they leave.
 *
 * @param {LineageShape} lineage
 * @param {number} last the last entry of the log
 * @returns {LineageRow[]}
 */
export function buildRows(lineage, last) {
  const { conversation, origin, sessions, branches } = lineage
  /** @type {LineageRow[]} */
  const rows = []
  if (origin) {
    const address = ["c", origin.id, ...(origin.seq ? [String(origin.seq)] : [])]
    rows.push({ ...PLAIN, key: origin.id, kind: "origin", title: origin.title ?? "Untitled", at: origin.created_at, address })
  }
  sessions.forEach((session, n) => {
    const until = sessions[n + 1]?.opened_seq ?? last
    const seq = Math.min(session.opened_seq + 1, last)
    rows.push({
      key: session.id,
      kind: "session",
      title: WORDS[session.opened_by] ?? session.opened_by,
      at: session.opened_at,
      address: ["c", conversation, String(seq)],
      isCompaction: session.summary !== null,
      isHead: n === sessions.length - 1,
      seq,
    })
    for (const branch of branches) {
      const from = branch.seq ?? 0
      const isHere = (n === 0 && from === 0) || (session.opened_seq < from && from <= until)
      if (!isHere) continue
      const address = ["c", branch.id]
      rows.push({ ...PLAIN, key: branch.id, kind: "branch", title: branch.title ?? "Untitled", at: branch.created_at, address, seq: from })
    }
  })
  return rows
}

const PLAIN = { isCompaction: false, isHead: false, seq: 0 }

/**
 * The compactions of a conversation, in order.
 *
 * @param {LineageSessionShape[]} sessions
 * @returns {Compaction[]}
 */
export function findCompactions(sessions) {
  return sessions.flatMap((session, n) =>
    session.summary === null
      ? []
      : [
          {
            session: session.id,
            seq: session.opened_seq,
            summary: session.summary,
            keptFrom: session.kept_from,
            isUndone: sessions[n + 1]?.opened_by === "restore",
            isHead: n === sessions.length - 1,
          },
        ],
  )
}
