/** What a page reads from the gateway, and reads again while it is looked at. */

import { useEffect, useRef, useState } from "../lib.js"
import { client, messageOf } from "../stores/client.js"

/**
 * @template T
 * @typedef {object} Resource
 * @property {T | null} value `null` until it was read
 * @property {string} trouble why the last reading failed, or nothing
 * @property {() => Promise<void>} reload
 */

/**
 * Read something when the page opens, when the connection comes back, and every so often.
 *
 * @template T
 * @param {() => Promise<T>} read
 * @param {{ every?: number, on?: ReadonlyArray<unknown> }} [options] milliseconds between two
 *   readings while the page is seen, and the values that make it another reading
 * @returns {Resource<T>}
 */
export function useResource(read, { every = 0, on = [] } = {}) {
  const [value, setValue] = useState(/** @type {T | null} */ (null))
  const [trouble, setTrouble] = useState("")
  const last = useRef(0)
  const reload = async () => {
    const number = ++last.current
    try {
      const found = await read()
      if (number !== last.current) return
      setValue(found)
      setTrouble("")
    } catch (error) {
      if (number === last.current) setTrouble(messageOf(error))
    }
  }
  const isUp = client.link.value === "up"
  useEffect(() => {
    if (isUp) reload()
    if (!every) return
    const timer = setInterval(() => {
      if (!document.hidden && client.link.value === "up") reload()
    }, every)
    return () => clearInterval(timer)
  }, [isUp, ...on])
  // The answer of a page that was left is nobody's.
  useEffect(() => () => void (last.current += 1), [])
  return { value, trouble, reload }
}
