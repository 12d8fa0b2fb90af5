/**
 * The connection, begun while the rest of the page is still on its way: it tells at once whether this
 * browser has to log in, for a gateway refuses it if so. This module imports nothing, so it runs first.
 */

const url = new URL("api/ws", document.baseURI)
url.protocol = url.protocol.replace("http", "ws")
url.hash = ""

export const openSocket = () => new WebSocket(url.href, ["clew.v1"])

// A link that logs in comes first: what is asked before it would be refused.
let early = location.hash.startsWith("#login=") ? null : openSocket()

/**
 * Take the connection once it is open; `null` if it was refused, failed, or was never begun.
 *
 * @returns {Promise<WebSocket | null>}
 */
export function takeEarlySocket() {
  const socket = early
  early = null
  return new Promise((resolve) => {
    if (!socket || socket.readyState >= WebSocket.OPEN) {
      resolve(socket?.readyState === WebSocket.OPEN ? socket : null)
      return
    }
    socket.onopen = () => resolve(socket)
    socket.onclose = () => resolve(null)
  })
}
