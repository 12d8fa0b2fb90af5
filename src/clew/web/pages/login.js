/** The page that asks for the token, once. */

import { html, useState } from "../lib.js"
import { logIn } from "../session.js"
import { messageOf } from "../stores/client.js"

/** @param {{ reason: string }} props */
export function LoginPage({ reason }) {
  const [token, setToken] = useState("")
  const [trouble, setTrouble] = useState(reason)
  const [isSent, setSent] = useState(false)
  /** @param {Event} event */
  const submit = async (event) => {
    event.preventDefault()
    setSent(true)
    try {
      await logIn({ token })
    } catch (error) {
      setTrouble(messageOf(error))
    }
    setSent(false)
  }
  return html`<main class="login">
    <form class="login-box" onSubmit=${submit}>
      <h1>Clew</h1>
      <p>
        Run <code>clew dashboard</code> on the machine of the gateway, which opens this page signed in, or paste its
        token.
      </p>
      <input type="text" autocomplete="username" value="clew" hidden readonly />
      <label for="token">Token</label>
      <input
        id="token"
        class="field"
        type="password"
        autocomplete="current-password"
        autofocus
        value=${token}
        onInput=${(/** @type {any} */ event) => setToken(event.currentTarget.value)}
      />
      ${trouble && html`<p class="error-text" role="alert">${trouble}</p>`}
      <button type="submit" class="primary" disabled=${isSent || !token}>Sign in</button>
    </form>
  </main>`
}
