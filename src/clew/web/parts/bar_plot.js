/** A plot of bars, one for each day; the table beside it has the numbers. */

import { html } from "../lib.js"

/** @typedef {{ name: string, value: number, words: string }} Bar */

const HEIGHT = 160
const STEP = 12
const GAP = 3

/** @param {{ label: string, bars: Bar[] }} props */
export function BarPlot({ label, bars }) {
  const most = Math.max(...bars.map((one) => one.value))
  if (!(most > 0)) return null
  const top = bars.find((one) => one.value === most)
  return html`<figure class="plot">
    <figcaption><span>${label}</span><span class="muted">highest: ${top?.words}</span></figcaption>
    <svg role="img" aria-label=${`${label}, ${bars.length} days`} viewBox=${`0 0 ${bars.length * STEP} ${HEIGHT}`} preserveAspectRatio="none">
      ${bars.map(({ name, value, words }, place) => {
        const height = value > 0 ? Math.max(2, (value / most) * HEIGHT) : 0
        return html`<g key=${name}>
          <title>${name}: ${words}</title>
          <rect class="behind" x=${place * STEP} y="0" width=${STEP} height=${HEIGHT} />
          <rect x=${place * STEP + GAP / 2} y=${HEIGHT - height} width=${STEP - GAP} height=${height} />
        </g>`
      })}
    </svg>
    <div class="plot-ends" aria-hidden="true"><span>${bars[0]?.name}</span><span>${bars.at(-1)?.name}</span></div>
  </figure>`
}
