// @ts-check
// The how view: where the hits lie among all distances, and what the search had to do.
import { html, useEffect, useRef } from "./vendor/standalone.module.js";
import { ofCollection } from "./api.js";
import { microseconds, number, Problem, Snippet, useAnswer } from "./parts.js";

/**
 * @typedef {import("./api.js").Explained} Explained
 * @typedef {import("./search.js").ViewProps} ViewProps
 */

/** The library is a classic script and so a global. */
const library = () => /** @type {any} */ (window).uPlot;

/** @param {string} name of a custom property of the style sheet */
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** @param {{counts: number[], edges: number[], kth: number}} props */
function Histogram({ counts, edges, kth }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    const element = /** @type {HTMLElement} */ (box.current);
    const middles = counts.map((_, place) => (edges[place] + edges[place + 1]) / 2);
    const axis = { stroke: colour("--text"), grid: { stroke: colour("--line") }, ticks: { stroke: colour("--line") } };
    const UPlot = library();
    const draw = () => {
      const plot = new UPlot(
        {
          width: element.clientWidth,
          height: 240,
          cursor: { show: false },
          legend: { show: false },
          scales: { x: { time: false, range: [edges[0], edges[edges.length - 1]] } },
          axes: [{ ...axis, label: "distance" }, { ...axis, size: 70 }],
          series: [{}, { fill: colour("--accent"), stroke: colour("--accent"), paths: UPlot.paths.bars({ size: [1, 100] }), points: { show: false } }],
          hooks: {
            draw: [(/** @type {any} */ drawn) => {
              const x = drawn.valToPos(kth, "x", true);
              const { ctx, bbox } = drawn;
              ctx.save();
              ctx.strokeStyle = colour("--pays");
              ctx.lineWidth = 2 * devicePixelRatio;
              ctx.beginPath();
              ctx.moveTo(x, bbox.top);
              ctx.lineTo(x, bbox.top + bbox.height);
              ctx.stroke();
              ctx.restore();
            }],
          },
        },
        [middles, counts],
        element,
      );
      return plot;
    };
    let plot = draw();
    const redraw = () => {
      plot.destroy();
      plot = draw();
    };
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const resized = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: 240 }));
    dark.addEventListener("change", redraw);
    resized.observe(element);
    return () => {
      dark.removeEventListener("change", redraw);
      resized.disconnect();
      plot.destroy();
    };
  }, [counts, edges, kth]);
  const all = counts.reduce((sum, count) => sum + count, 0);
  return html`<figure><div ref=${box} class="plot" role="img" aria-label=${
    `Histogram of the distances of ${number(all)} items, from ${number(edges[0])} to ${number(edges[edges.length - 1])}`}></div>
    <figcaption><span class="key pays"></span> The last hit is at distance ${number(kth)}; ${number(all)} items lie between
      ${" "}${number(edges[0])} and ${number(edges[edges.length - 1])}.</figcaption></figure>`;
}

/** @param {{facts: [string, any][]}} props */
export const Facts = ({ facts }) =>
  html`<dl class="facts">${facts.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;

/** @param {ViewProps} props */
export function How({ collection, query, k, again }) {
  const path = ofCollection(collection);
  const request = query && { method: "POST", path: `${path}/explain`, body: { ...query, k: Math.min(k, 100) } };
  const found = useAnswer(request, again);
  const search = useAnswer(query && { method: "POST", path: `${path}/search`, body: { ...query, k } }, again);
  if (!query) return null;
  const answer = /** @type {Explained | null} */ (found.answer);
  const plan = answer?.plan;
  const count = plan?.counters ?? {};
  return html`<div aria-busy=${found.busy}><${Problem} error=${found.error} />
    ${answer && plan && html`<h2>All distances</h2>
      ${answer.histogram && answer.hits.length
        ? html`<${Histogram} ...${answer.histogram} kth=${answer.hits[answer.hits.length - 1].distance} />`
        : html`<p class="quiet">There are none, or too many to draw.</p>`}
      <h2>The search</h2>
      <p>Plan <strong>${plan.plan}</strong>${plan.reason ? `: ${plan.reason}` : ""}.</p>
      <${Facts} facts=${[
        ["predicted time", plan.predicted_us ? microseconds(plan.predicted_us) : "not predicted"],
        ["predicted time of a scan", plan.scan_us ? microseconds(plan.scan_us) : "not predicted"],
        ["real time", microseconds(plan.engine_us)],
        ["real time over HTTP", search.answer ? microseconds(search.answer.took_us) : "…"],
        ["probes", number(count.probes ?? 0)],
        ["empty probes", number(count.empty_probes ?? 0)],
        ["rows scanned", number(count.rows_scanned ?? 0)],
        ["rows compared in full", number(count.verified ?? 0)],
        ["pages read", number(plan.pages ?? 0)],
      ]} />
      <h2>Segments and bands</h2>
      <div class="wide"><table><thead><tr><th>rows</th><th>removed</th><th>bands</th><th>bits of a band</th><th>why</th></tr></thead>
        <tbody>${plan.segments.map(
          (/** @type {any} */ one) => html`<tr><td>${number(one.rows)}</td><td>${number(one.removed_rows)}</td>
            <td>${one.bands} of ${one.wanted_bands}</td><td>${one.band_bits}</td><td>${one.decision}</td></tr>`,
        )}</tbody></table></div>`}
    <${Snippet} request=${request} /></div>`;
}
