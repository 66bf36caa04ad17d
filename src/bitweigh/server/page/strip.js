// @ts-check
// The bits of an item as a strip: from heavy to light, as high as they weigh, and red where they pay.
import { html, useMemo, useState } from "./vendor/standalone.module.js";
import { askedFor, extraOf, payingBits, weightOf } from "./costs.js";
import { number } from "./format.js";

// More bars than this are finer than a screen.
const MAX_SHOWN = 512;
const HEIGHT = 10;
const LOWEST = 1.2;
const GAP = 0.12;

/**
 * One path for the bits that pay and one for those that do not: a bar of its own for each bit of
 * each hit would be a hundred thousand elements.
 * @param {Bits} item
 * @param {Costs} costs
 * @param {number[]} shown
 */
function pathsOf(item, costs, shown) {
  const heaviest = Math.max(...shown.map((bit) => weightOf(costs[bit])), Number.MIN_VALUE);
  const paths = { pays: "", free: "" };
  shown.forEach((bit, place) => {
    const high = LOWEST + ((HEIGHT - LOWEST) * weightOf(costs[bit])) / heaviest;
    const path = `M${place} ${HEIGHT}v${-high.toFixed(2)}h${1 - GAP}V${HEIGHT}z`;
    paths[extraOf(item, costs, bit) > 0 ? "pays" : "free"] += path;
  });
  return paths;
}

/**
 * The bits of an item in words, for those who do not see the strip.
 * @param {string} id
 * @param {Bits} item
 * @param {Costs} costs
 */
function inWords(id, item, costs) {
  const paying = payingBits(item, costs);
  const highest = paying
    .slice(0, 3)
    .map((bit) => `bit ${bit} pays ${number(extraOf(item, costs, bit))}`);
  const differs = `#${id} differs from the query in ${paying.length} of ${costs.length} bits`;
  return highest.length ? `${differs}; the most expensive: ${highest.join(", ")}` : differs;
}

/** @param {Bits} item @param {Costs} costs @param {number} bit */
const facts = (item, costs, bit) =>
  `bit ${bit} · weight ${number(weightOf(costs[bit]))} · query ${askedFor(costs[bit])}, item ${item.bits[bit]} · ` +
  `pays ${number(extraOf(item, costs, bit))}`;

/** @param {StripProps} props */
export function Strip({ id, item, costs, order, low }) {
  const [pointed, setPointed] = useState({ bit: -1, left: 0 });
  const shown = order.slice(0, MAX_SHOWN);
  const paths = useMemo(() => pathsOf(item, costs, shown), [item, costs, order]);
  const words = useMemo(() => inWords(id, item, costs), [id, item, costs]);
  /** @param {any} event */
  const point = (event) => {
    const area = event.currentTarget.getBoundingClientRect();
    const part = (event.clientX - area.left) / area.width;
    setPointed({ bit: shown[Math.floor(part * shown.length)] ?? -1, left: 100 * part });
  };
  return html`<div class=${`strip ${low ? "low" : ""}`} onPointerMove=${point}
      onPointerLeave=${() => setPointed({ bit: -1, left: 0 })}>
    <svg role="img" aria-label=${words} preserveAspectRatio="none" viewBox=${`0 0 ${shown.length} ${HEIGHT}`}>
      <path class="free" d=${paths.free} /><path class="pays" d=${paths.pays} /></svg>
    ${pointed.bit >= 0 && html`<span class=${`pointed ${pointed.left > 50 ? "left" : ""}`} aria-hidden="true"
      style=${{ left: `${pointed.left}%` }}>${facts(item, costs, pointed.bit)}</span>`}</div>`;
}

/**
 * What the order and the colours of strips mean.
 * @param {{costs: Costs}} props
 */
export const Legend = ({ costs }) => html`${costs.length > MAX_SHOWN ? `The first ${MAX_SHOWN} bits are shown. ` : ""}${
  costs.some((pair) => weightOf(pair) !== weightOf(costs[0]))
    ? "Bits from heavy to light, as tall as their weights" : "All bits weigh the same here"}:
  ${" "}<span class="swatch pays"></span> differs from the query and pays,
  ${" "}<span class="swatch free"></span> agrees and is free.`;
