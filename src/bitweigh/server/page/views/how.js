// @ts-check
// The how view: where the hits lie among all distances, and what the search had to do.
import { html } from "../vendor/standalone.module.js";
import { Problem, useAnswer, Waiting } from "../answer.js";
import { Amounts, Facts } from "../figures.js";
import { counted, microseconds, number, percent } from "../format.js";
import { Histogram } from "../histogram.js";
import { BY_CODES, explainRequest, searchRequest } from "../requests.js";
import { Snippet } from "../snippet.js";

const BINS = 60;
const PROBING = ["probes", "empty_probes", "blocks_probed", "rounds", "duplicates"];

/**
 * Times of the same search, predicted and measured.
 * @param {Plan} plan
 */
function timesOf(plan) {
  const found = [];
  if (plan.predicted_us) found.push({ name: "probing, predicted at first", us: plan.predicted_us, kind: "soft" });
  if (plan.scan_us) found.push({ name: "scanning, predicted", us: plan.scan_us, kind: "soft" });
  found.push({ name: "in the engine, measured", us: plan.engine_us, kind: "" });
  return found.map(({ name, us, kind }) => ({ name, amount: us, text: microseconds(us), kind }));
}

/**
 * How many rows were looked at. Rows of probed blocks are among those scanned; a sample that is
 * scored directly may be scanned later.
 * @param {Plan} plan
 * @param {number} rows
 */
const lookedAt = ({ counters }, rows) => Math.min(rows, counters.rows_scanned + counters.rows_scored_directly);

/**
 * From all items to the hits: how many were looked at, and how closely.
 * @param {Plan} plan
 * @param {number} rows
 * @param {number} hits
 */
function rowsOf(plan, rows, hits) {
  const looked = lookedAt(plan, rows);
  const scored = Math.min(looked, plan.counters.verified + plan.counters.rows_scored_directly);
  /** @param {number} count */
  const text = (count) => (rows ? `${number(count)} (${percent(count / rows)})` : number(count));
  return [
    { name: "items", amount: rows, text: number(rows), kind: "soft" },
    { name: "looked at", amount: looked, text: text(looked) },
    { name: "scored exactly", amount: scored, text: text(scored) },
    { name: "hits", amount: hits, text: number(hits), kind: "pays" },
  ];
}

/**
 * What probing did, if there was any, and the memory that was read.
 * @param {Plan} plan
 */
const factsOf = ({ counters, pages, pages_from_disk }) => [
  ...(counters.probes ? PROBING : []).map((name) => [name.replaceAll("_", " "), number(counters[name])]),
  ["4 KiB pages read", number(pages)],
  ["of these, from disk", number(pages_from_disk)],
];

/** @param {Plan} plan @param {number} rows */
function earned(plan, rows) {
  const { searches, searches_by_bands, segments, counters } = plan;
  const banded = segments.some((one) => one.bands > 0);
  if (!banded) return "There are no bands here, so every search is a scan.";
  const share = searches ? `Bands have answered ${percent(searches_by_bands / searches)} of ${counted(searches, "search", "searches")} so far. ` : "";
  if (!counters.probes) return `${share}For this query they were not used.`;
  return `${share}For this query they let the search skip ${percent(1 - lookedAt(plan, rows) / rows)} of the items.`;
}

/**
 * What stands in the reason of the plan is not said again.
 * @param {{segments: Segment[], reason: string}} props
 */
function Segments({ segments, reason }) {
  if (!segments.length) return null;
  return html`<ul class="segments">${segments.map(
    (one) => html`<li>Segment of ${counted(one.rows, "row")}, ${one.bands ? `${counted(one.bands, "band")} of up to ${counted(one.band_bits, "bit")}` : "no bands"},
      ${" "}${one.layout} layout${one.removed_rows ? `, ${number(one.removed_rows)} removed` : ""}
      ${!reason.includes(one.decision) && html`<span class="line">${one.decision}</span>`}</li>`,
  )}</ul>`;
}

/** @param {ViewProps} props */
export function How(props) {
  const { query, listed, again } = props;
  const request = explainRequest(props, { bins: BINS });
  const { answer, error, busy, fresh } = useAnswer(request, again);
  // Only after explain, which computes all distances: its time would otherwise include waiting for that.
  const search = useAnswer(answer && fresh && !busy ? searchRequest(props) : null, again);
  if (!query) return null;
  if (!answer) return html`<${Problem} error=${error} /><${Waiting} busy=${busy} />`;
  const { plan, hits, histogram, exact } = /** @type {Explained} */ (answer);
  const segments = plan.segments ?? [];
  const rows = segments.reduce((sum, one) => sum + one.rows, 0) || listed.items;
  const counters = plan.counters;
  return html`<div aria-busy=${busy}><${Problem} error=${error} />
    <h2>All distances</h2>
    ${histogram && hits.length > 0
      ? html`<${Histogram} ...${histogram} kth=${hits[hits.length - 1].distance} />`
      : html`<p class="empty">${hits.length ? (listed.cluster ? "All distances of a cluster would cross the network, so none are drawn." : "There are too many items to draw all distances.") : "There is nothing to draw."}</p>`}
    <h2>The search</h2>${!exact && html`<p class="line">${BY_CODES}</p>`}
    <p><span class="badge">${plan.plan}</span> ${plan.reason}</p>
    ${counters && html`<div class="pairs"><section class="card"><h3>Time</h3>
        <${Amounts} label="times" amounts=${timesOf(plan)} />
        ${search.answer && html`<p class="line">Over HTTP, the server took ${microseconds(search.answer.took_us)} in total${query.text ? ", with the embedding of the text" : ""}.</p>`}</section>
      <section class="card"><h3>Items</h3><${Amounts} label="items" amounts=${rowsOf(plan, rows, hits.length)} /></section></div>
    <${Facts} facts=${factsOf(plan)} />
    <h2>Bands</h2><p>${earned(plan, rows)}</p><${Segments} segments=${segments} reason=${plan.reason} />`}
    <${Snippet} requests=${[request, searchRequest(props)]} /></div>`;
}
