// @ts-check
// The distances of all items as a histogram, with the last hit marked; drawn by uPlot.
import { html, useEffect, useRef, useState } from "./vendor/standalone.module.js";
import { counted, distance, number, percent } from "./format.js";

const HEIGHT = 260;
const WHOLE_STEPS = Array.from({ length: 48 }, (_, place) => [1, 2, 5][place % 3] * 10 ** Math.floor(place / 3));
const DARK = "(prefers-color-scheme: dark)";

/** The library is a classic script and so a global. */
const library = () => /** @type {any} */ (window).uPlot;

/**
 * A colour of the style sheet.
 * @param {string} name of a custom property
 */
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/**
 * A vertical line, and what it says beside it.
 * @param {number} value on the x axis
 * @param {string} text
 */
const marker = (value, text) => (/** @type {any} */ { ctx, bbox, valToPos }) => {
  const x = Math.round(valToPos(value, "x", true));
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = colour("--pays");
  ctx.lineWidth = 2 * ratio;
  ctx.beginPath();
  ctx.moveTo(x, bbox.top);
  ctx.lineTo(x, bbox.top + bbox.height);
  ctx.stroke();
  ctx.font = `${13 * ratio}px system-ui, sans-serif`;
  const wide = ctx.measureText(text).width;
  const fits = x + wide + 12 * ratio < bbox.left + bbox.width;
  const left = fits ? x + 7 * ratio : x - 7 * ratio - wide;
  // Bars may be as high as the text.
  ctx.fillStyle = colour("--card");
  ctx.fillRect(left - 4 * ratio, bbox.top + ratio, wide + 8 * ratio, 19 * ratio);
  ctx.fillStyle = ctx.strokeStyle;
  ctx.textAlign = "left";
  ctx.fillText(text, left, bbox.top + 14 * ratio);
  ctx.restore();
};

/** @param {Drawn} given */
function optionsOf({ counts, edges, kth, log, width }) {
  const UPlot = library();
  const axis = {
    stroke: colour("--quiet"),
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { stroke: colour("--line"), width: 1 },
    font: "12px system-ui, sans-serif",
  };
  // Of a logarithmic axis only the powers of ten have lines and numbers.
  const marked = (/** @type {any} */ _, /** @type {number[]} */ ticks) =>
    ticks.map((tick) => (log && Math.log10(tick) % 1 !== 0 ? null : tick));
  const first = edges[0];
  const last = edges[edges.length - 1];
  // If all distances are whole, edges lie halfway between them, and only whole numbers are marked.
  const steps = Math.abs(first % 1) === 0.5 ? WHOLE_STEPS : undefined;
  return {
    width,
    height: HEIGHT,
    cursor: { show: false },
    legend: { show: false },
    padding: [8, 8, 0, 0],
    scales: {
      x: { time: false, range: [first, last > first ? last : first + 1] },
      y: log ? { distr: 3, range: [0.5, Math.max(...counts, 1) * 1.5] } : { range: [0, Math.max(...counts, 1) * 1.08] },
    },
    axes: [
      { ...axis, size: 36, incrs: steps },
      {
        ...axis,
        size: 64,
        filter: marked,
        grid: { ...axis.grid, filter: marked },
        ticks: { ...axis.ticks, filter: marked },
        values: (/** @type {any} */ _, /** @type {(number | null)[]} */ ticks) =>
          ticks.map((tick) => (tick === null ? "" : number(tick))),
      },
    ],
    series: [
      {},
      {
        fill: colour("--accent"),
        stroke: colour("--accent"),
        width: 0,
        points: { show: false },
        paths: UPlot.paths.bars({ size: [0.94, 100], align: 0 }),
      },
    ],
    hooks: { draw: [marker(kth, "the last hit")] },
  };
}

/** @param {Distances & {kth: number}} props */
export function Histogram({ counts, edges, min, max, kth }) {
  const box = useRef(null);
  // Hits are few among all items: on a linear scale they would be invisible.
  const [log, setLog] = useState(true);
  const all = counts.reduce((sum, count) => sum + count, 0);
  useEffect(() => {
    const element = /** @type {HTMLElement} */ (box.current);
    // Bars are as wide as the way to the next one, so there is one more, without items.
    const middles = edges.map((edge, place) => edge + (edges[1] - edges[0]) / 2);
    const shown = middles.map((_, place) => (log && !counts[place] ? null : counts[place] ?? 0));
    /** @type {any} */
    let plot = null;
    const draw = () => {
      plot?.destroy();
      plot = new (library())(
        optionsOf({ counts, edges, kth, log, width: element.clientWidth }),
        [middles, shown],
        element,
      );
    };
    draw();
    const dark = matchMedia(DARK);
    const resized = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT }));
    dark.addEventListener("change", draw);
    resized.observe(element);
    return () => {
      dark.removeEventListener("change", draw);
      resized.disconnect();
      plot.destroy();
    };
  }, [counts, edges, kth, log]);
  const words = `Number of items by distance: ${number(all)} between ${distance(min)} and ${distance(max)}, the last hit at ${distance(kth)}`;
  return html`<figure class="card"><div ref=${box} class="plot" role="img" aria-label=${words}></div>
    <figcaption class="toolbar"><span class="line">${counted(all, "item")} by distance, from ${distance(min)} to ${distance(max)}.
      ${" "}The last hit is at ${distance(kth)}${max > min ? `, ${percent((kth - min) / (max - min))} of the way` : ""}.</span>
      <label><input type="checkbox" checked=${log} onChange=${() => setLog(!log)} /> Logarithmic</label></figcaption></figure>`;
}
