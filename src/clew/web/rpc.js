/**
 * The client of JSON-RPC over the WebSocket of the gateway.
 *
 * It connects again by itself, opens what was open, and subscribes after the last entry that was
 * received: whoever follows a conversation misses nothing and gets nothing twice.
 */

import { signal } from "./lib.js"

/** @import { Methods, Notice } from "./rpc_types.d.ts" */
/** @typedef {"connecting" | "up" | "down"} LinkState */
/**
 * @typedef {object} Follower
 * @property {() => number} after the last entry that it has
 * @property {(event: Notice) => void} receive
 * @property {() => void} resume called before each new subscription
 */

const FIRST_PAUSE = 250
const LONGEST_PAUSE = 5000
/** Milliseconds within which a connection that seems to be up has to answer. */
const PROBE_PATIENCE = 5000
/** Bytes that the gateway takes at once. */
const MOST_BYTES = 16 * 1024 * 1024
/** The server's word for a login that does not hold any more. */
const CLOSE_LOGGED_OUT = 4401

/** Codes of errors after which the same call may be made again. */
const REPEATABLE = new Set([-32012, -32008, -32007, -32011])

/** An error that the server answered, or the loss of the connection before it did. */
export class CallFailed extends Error {
  /**
   * @param {number} code
   * @param {string} message
   */
  constructor(code, message) {
    super(message)
    this.name = "CallFailed"
    this.code = code
  }

  /** Whether the same call can be made again, if it has a key or changes nothing. */
  get isRepeatable() {
    return REPEATABLE.has(this.code)
  }
}

/** @param {string} frame */
const isTooLarge = (frame) => frame.length > MOST_BYTES / 4 && new Blob([frame]).size > MOST_BYTES

const lost = () => new CallFailed(-32012, "the connection was lost before the answer")

export class RpcClient {
  /** @type {WebSocket | null} */
  #socket = null
  /** @type {Map<number, { resolve: (value: any) => void, reject: (error: Error) => void }>} */
  #waiting = new Map()
  /** @type {Map<string, Follower>} */
  #followers = new Map()
  /** @type {Set<string>} */
  #opened = new Set()
  /** The conversations whose events arrive. */
  followed = signal(/** @type {ReadonlySet<string>} */ (new Set()))
  /** @type {Array<() => void>} */
  #onceUp = []
  #lastId = 0
  #pause = FIRST_PAUSE
  #timer = 0
  #isStopped = true

  /**
   * @param {() => WebSocket} openSocket
   * @param {() => Promise<boolean>} mayConnect asked before each attempt
   */
  constructor(openSocket, mayConnect) {
    this.openSocket = openSocket
    this.mayConnect = mayConnect
    this.link = signal(/** @type {LinkState} */ ("connecting"))
  }

  /**
   * Connect, and stay connected.
   *
   * @param {boolean} [isAllowed] whether it need not be asked for the first attempt
   * @param {WebSocket | null} [socket] a connection that was begun for it
   */
  start(isAllowed = false, socket = null) {
    if (!this.#isStopped) return
    this.#isStopped = false
    addEventListener("online", this.#hurry)
    document.addEventListener("visibilitychange", this.#hurry)
    if (socket && socket.readyState <= WebSocket.OPEN) this.#use(socket)
    else this.#connect(isAllowed)
  }

  /** Close the connection, and stay so. */
  stop() {
    this.#isStopped = true
    clearTimeout(this.#timer)
    removeEventListener("online", this.#hurry)
    document.removeEventListener("visibilitychange", this.#hurry)
    this.#socket?.close()
  }

  /**
   * Call a method; waits for a connection if there is none.
   *
   * @template {keyof Methods} M
   * @param {M} method
   * @param {Methods[M]["params"]} [params]
   * @returns {Promise<Methods[M]["result"]>}
   */
  async call(method, params) {
    if (this.link.value !== "up") await new Promise((resolve) => this.#onceUp.push(() => resolve(null)))
    const result = await this.#send(method, params)
    if (method === "conversation.open") this.#opened.add(result.conversation.id)
    if (method === "conversation.close") this.#opened.delete(result.conversation)
    return result
  }

  /**
   * Follow a conversation until the returned function is called.
   *
   * @param {string} conversation its id
   * @param {Follower} follower
   */
  follow(conversation, follower) {
    this.#followers.set(conversation, follower)
    if (this.link.value === "up") this.#subscribe(conversation, follower)
    return () => {
      if (this.#followers.get(conversation) !== follower) return
      this.#followers.delete(conversation)
      this.#note(conversation, false)
      if (this.link.value === "up") {
        this.#send("events.unsubscribe", { conversation }).catch(() => {})
      }
    }
  }

  async #connect(isAllowed = false) {
    if (this.#isStopped || this.#socket) return
    if (!isAllowed && !(await this.mayConnect())) return this.#retry()
    if (this.#isStopped || this.#socket) return
    this.#use(this.openSocket())
  }

  /** @param {WebSocket} socket */
  #use(socket) {
    this.#socket = socket
    if (socket.readyState === WebSocket.OPEN) this.#restore(socket)
    else socket.onopen = () => this.#restore(socket)
    socket.onmessage = (event) => this.#receive(String(event.data))
    socket.onclose = (event) => this.#lose(socket, event.code)
  }

  /** @param {WebSocket} socket */
  async #restore(socket) {
    this.#pause = FIRST_PAUSE
    for (const conversation of this.#opened) {
      await this.#send("conversation.open", { conversation }).catch(() => {})
    }
    for (const [conversation, follower] of this.#followers) {
      await this.#subscribe(conversation, follower)
    }
    if (this.#socket !== socket) return
    this.link.value = "up"
    for (const resolve of this.#onceUp.splice(0)) resolve()
  }

  /**
   * @param {string} conversation
   * @param {Follower} follower
   */
  async #subscribe(conversation, follower) {
    follower.resume()
    try {
      await this.#send("events.subscribe", { conversation, after: follower.after() })
      if (this.#followers.get(conversation) === follower) this.#note(conversation, true)
    } catch (error) {
      if (error instanceof CallFailed && error.code === -32001) {
        follower.receive(/** @type {any} */ ({ type: "deleted", conversation }))
      }
    }
  }

  /**
   * @param {string} conversation
   * @param {boolean} isFollowed
   */
  #note(conversation, isFollowed) {
    const known = new Set(this.followed.value)
    if (isFollowed) known.add(conversation)
    else known.delete(conversation)
    this.followed.value = known
  }

  /**
   * @param {WebSocket} socket
   * @param {number} code
   */
  #lose(socket, code) {
    if (this.#socket !== socket) return
    this.#socket = null
    this.link.value = "down"
    this.followed.value = new Set()
    for (const { reject } of this.#waiting.values()) reject(lost())
    this.#waiting.clear()
    if (code === CLOSE_LOGGED_OUT) this.#pause = 0
    this.#retry()
  }

  #retry() {
    if (this.#isStopped) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#connect(), this.#pause * (0.75 + Math.random() / 2))
    this.#pause = Math.min(Math.max(2 * this.#pause, FIRST_PAUSE), LONGEST_PAUSE)
  }

  /** A phone that wakes up has connections that look as if they were open. */
  #hurry = () => {
    if (document.hidden || this.#isStopped) return
    const socket = this.#socket
    if (!socket) {
      this.#pause = FIRST_PAUSE
      clearTimeout(this.#timer)
      this.#connect()
    } else if (this.link.value === "up") {
      const timer = setTimeout(() => {
        socket.close()
        this.#lose(socket, 0)
      }, PROBE_PATIENCE)
      this.#send("agent.describe", {}).then(
        () => clearTimeout(timer),
        () => clearTimeout(timer),
      )
    }
  }

  /**
   * @param {string} method
   * @param {unknown} params
   * @returns {Promise<any>}
   */
  #send(method, params) {
    const socket = this.#socket
    if (!socket || socket.readyState !== WebSocket.OPEN) return Promise.reject(lost())
    const id = ++this.#lastId
    const frame = JSON.stringify({ jsonrpc: "2.0", id, method, params: params ?? {} })
    // The gateway would close the connection, and the same would be sent for ever.
    if (isTooLarge(frame)) {
      return Promise.reject(new CallFailed(-32600, "larger than 16 MB with its files: send them in several messages"))
    }
    socket.send(frame)
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }))
  }

  /** @param {string} frame */
  #receive(frame) {
    const message = JSON.parse(frame)
    if (message.method === "event") {
      this.#deliver(message.params)
      return
    }
    const waiting = this.#waiting.get(message.id)
    this.#waiting.delete(message.id)
    if (message.error) waiting?.reject(new CallFailed(message.error.code, message.error.message))
    else waiting?.resolve(message.result)
  }

  /** @param {Notice} event */
  #deliver(event) {
    const follower = this.#followers.get(event.conversation)
    if (!follower) return
    const isGap = event.type === "entry" && event.seq > follower.after() + 1
    // Never observed: subscribing again asks for what is missing.
    if (isGap || event.type === "ended") this.#subscribe(event.conversation, follower)
    else follower.receive(event)
  }
}
