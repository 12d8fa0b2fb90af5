import { html } from "../lib.js"
export const Page = () => html``
