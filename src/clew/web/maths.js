/** Formulas as MathML, which browsers draw and read aloud; loaded with the first one. */

import DOMPurify from "./vendor/dompurify.js"
import temml from "./vendor/temml.js"

const ATTRIBUTES = (
  "accent accentunder columnalign columnlines columnspacing columnspan depth display displaystyle fence form height linethickness" +
  " lspace mathvariant maxsize minsize movablelimits rowalign rowlines rowspacing rowspan rspace scriptlevel separator stretchy" +
  " symmetric voffset width"
).split(" ")
const TAGS = (
  "math merror mfrac mi mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow ms mspace msqrt mstyle msub" +
  " msubsup msup mtable mtd mtext mtr munder munderover none semantics"
).split(" ")
const MOST = 5000
const TAG = /<[^>]*>/g
const STYLE = / style="[^"]*"/g

/**
 * Put the formula in the place of its source; one that cannot be read stays as it is.
 *
 * @param {Element} code
 * @param {boolean} isDisplay
 */
export function drawFormula(code, isDisplay) {
  const source = code.textContent ?? ""
  if (source.length > MOST) return
  try {
    const made = temml.renderToString(source, { displayMode: isDisplay, throwOnError: true, trust: false, maxExpand: 200 })
    // The page's policy allows no styles in elements, not even to remove them.
    const plain = made.replace(TAG, (tag) => tag.replace(STYLE, ""))
    const drawn = /** @type {DocumentFragment} */ (
      /** @type {unknown} */ (
        DOMPurify.sanitize(plain, { ALLOWED_TAGS: TAGS, ALLOWED_ATTR: ATTRIBUTES, RETURN_DOM_FRAGMENT: true })
      )
    )
    const box = document.createElement("span")
    box.className = isDisplay ? "math display" : "math"
    box.title = source
    box.append(drawn)
    code.replaceWith(box)
  } catch {
    code.classList.add("unread")
  }
}
