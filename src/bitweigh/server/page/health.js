// @ts-check
// The health view: rows, memory, checkpoint, requests and how long they took.
import { html, useEffect, useState } from "./vendor/standalone.module.js";
import { ask, metrics, ofCollection } from "./api.js";
import { Facts } from "./how.js";
import { microseconds, number, Problem, size, Snippet } from "./parts.js";

/**
 * @typedef {import("./search.js").ViewProps} ViewProps
 * @typedef {{route: string, count: number, failed: number, p99: number}} Route
 */

const EVERY_MS = 5000;
const LINE = /^(\w+)\{(.*)\} (\S+)$/;

/** @param {string} text labels such as `a="b",c="d"` */
const labels = (text) => Object.fromEntries([...text.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map((one) => [one[1], one[2]]));

/**
 * Requests by route, from metrics in Prometheus's format. The p99 is the end of the bucket that
 * holds it, so it is at most that.
 * @param {string} text @returns {Route[]}
 */
export function routesOf(text) {
  /** @type {Map<string, {count: number, failed: number, buckets: [number, number][]}>} */
  const found = new Map();
  for (const line of text.split("\n")) {
    const parts = LINE.exec(line);
    if (!parts) continue;
    const { route, status, le } = labels(parts[2]);
    if (route === undefined) continue;
    const value = Number(parts[3]);
    const entry = found.get(route) ?? { count: 0, failed: 0, buckets: [] };
    found.set(route, entry);
    if (parts[1] === "bitweigh_requests_total") {
      entry.count += value;
      if (Number(status) >= 500) entry.failed += value;
    }
    if (parts[1] === "bitweigh_request_seconds_bucket")
      entry.buckets.push([le === "+Inf" ? Infinity : Number(le), value]);
  }
  return [...found]
    .map(([route, { count, failed, buckets }]) => {
      buckets.sort((a, b) => a[0] - b[0]);
      const wanted = 0.99 * (buckets[buckets.length - 1]?.[1] ?? 0);
      return { route, count, failed, p99: buckets.find(([, below]) => below >= wanted)?.[0] ?? NaN };
    })
    .sort((a, b) => b.count - a.count);
}

/** @param {{memory: Record<string, number> | null}} props */
function Memory({ memory }) {
  if (!memory) return html`<p class="quiet">The collection has no index yet.</p>`;
  const parts = Object.entries(memory).filter(([name, bytes]) => name !== "total" && bytes > 0);
  return html`<div class="wide"><table><thead><tr><th>part</th><th>bytes</th><th>share</th></tr></thead><tbody>
    ${parts.map(([name, bytes]) => html`<tr><td>${name.replaceAll("_", " ")}</td><td>${size(bytes)}</td>
      <td><meter min="0" max=${memory.total} value=${bytes} aria-label=${`share of ${name}`}></meter></td></tr>`)}
    <tr><td>total</td><td>${size(memory.total)}</td><td></td></tr></tbody></table></div>`;
}

/** @param {ViewProps} props */
export function Health({ collection, again }) {
  const [state, setState] = useState({
    facts: /** @type {any} */ (null), about: /** @type {any} */ (null), routes: /** @type {Route[]} */ ([]), error: "", note: "",
  });
  const request = { method: "GET", path: ofCollection(collection) };
  useEffect(() => {
    let ended = false;
    const look = async () => {
      try {
        const [facts, about] = await Promise.all([ask(request), ask({ method: "GET", path: "/v1" })]);
        // A key of one collection may not read the metrics of all.
        const text = await metrics().catch((refused) => {
          if (refused.status !== 403) throw refused;
          return null;
        });
        const note = text === null ? "This key may not read the metrics of the server." : "";
        if (!ended) setState({ facts, about, routes: text === null ? [] : routesOf(text), error: "", note });
      } catch (refused) {
        if (!ended) setState((old) => ({ ...old, error: /** @type {Error} */ (refused).message }));
      }
    };
    look();
    const timer = setInterval(look, EVERY_MS);
    return () => {
      ended = true;
      clearInterval(timer);
    };
  }, [request.path, again]);
  const { facts, about, routes, error, note } = state;
  return html`<div><${Problem} error=${error} />
    ${facts && html`<h2>Collection</h2><${Facts} facts=${[
        ["rows", number(facts.items)],
        ["kind", facts.definition.kind],
        ["bits", facts.n_bits ?? "not fitted yet"],
        ["ready", facts.ready ? "yes" : "no"],
        ["last change", number(facts.seq)],
        ["checkpoint age", `${number(Math.round(facts.checkpoint.age_seconds))} s`],
        ["changes since", number(facts.checkpoint.changes_since)],
        ["disk", facts.disk_full ? "full" : "has room"],
      ]} />
      <h2>Memory</h2><${Memory} memory=${facts.memory} />
      <h2>Server</h2><${Facts} facts=${[
        ["version", about.version],
        ["kernel", about.kernel],
        ["threads", about.threads],
        ["up", `${number(Math.round(about.uptime_seconds))} s`],
        ["writes", about.read_only ? "refused" : "taken"],
        ["embedder", about.embedder ? "yes" : "no"],
      ]} />
      <h2>Requests</h2>${note && html`<p class="quiet">${note}</p>`}
      ${routes.length > 0 && html`<div class="wide"><table><thead><tr><th>route</th><th>requests</th><th>5xx</th><th>p99</th></tr></thead>
        <tbody>${routes.map((one) => html`<tr><td><code>${one.route}</code></td><td>${number(one.count)}</td><td>${number(one.failed)}</td>
          <td>${Number.isFinite(one.p99) ? `≤ ${microseconds(1e6 * one.p99)}` : one.count ? "> 10 s" : ""}</td></tr>`)}</tbody></table></div>`}`}
    <${Snippet} request=${request} /><${Snippet} request=${{ method: "GET", path: "/metrics" }} /></div>`;
}
