// @ts-check
// The health view: rows, memory, checkpoint, requests and how long they took, shards and replicas.
import { html, useEffect, useState } from "../vendor/standalone.module.js";
import { Problem, Waiting } from "../answer.js";
import { ask, metrics, ofCollection } from "../api.js";
import { Amounts, Facts, Table } from "../figures.js";
import { counted, duration, microseconds, number, percent, size } from "../format.js";
import { routesOf } from "../metrics.js";
import { Snippet } from "../snippet.js";

const EVERY_MS = 2000;

/** @param {{memory: Record<string, number>}} props */
function Memory({ memory }) {
  const parts = Object.entries(memory).filter(([name, bytes]) => name !== "total" && bytes > 0);
  return html`<section class="card"><h3>Memory: ${size(memory.total)}</h3>
    <${Amounts} label="memory by part" amounts=${parts.map(([name, bytes]) => ({
      name: name.replaceAll("_", " "), amount: bytes, text: `${size(bytes)}, ${percent(bytes / memory.total)}`,
    }))} /></section>`;
}

/**
 * The p99 is the end of the bucket that holds it.
 * @param {Route} route
 */
const p99Of = ({ count, p99 }) => (!count || Number.isNaN(p99) ? "–" : Number.isFinite(p99) ? `≤ ${microseconds(1e6 * p99)}` : "> 10 s");

/** @param {{route: string}} props */
const Path = ({ route }) => {
  const parts = route.replace("/v1/collections/{c}", "{c}").split("/");
  return html`<code>${parts.map((part, at) => (at ? html`/<wbr />${part}` : part))}</code>`;
};

/** @param {{routes: Route[], per_second: number | null}} props */
function Requests({ routes, per_second }) {
  const rows = routes.filter((one) => one.count);
  return html`<section class="card"><h3>Requests${per_second === null ? "" : `: ${number(Math.round(10 * per_second) / 10)} a second`}</h3>
    ${!rows.length && html`<p class="quiet">None yet.</p>`}
    ${rows.length > 0 && html`<${Table} label="requests by route" kind="full">
      <thead><tr><th>route</th><th class="num">count</th><th class="num">failed</th><th class="num">p99</th></tr></thead>
      <tbody>${rows.map((one) => html`<tr key=${one.route}><td><${Path} route=${one.route} /></td>
        <td class="num">${number(one.count)}</td><td class=${`num ${one.failed ? "bad" : ""}`}>${number(one.failed)}</td>
        <td class="num">${p99Of(one)}</td></tr>`)}</tbody><//>`}</section>`;
}

/**
 * Shards across, replicas down: which process has which rows.
 * @param {{state: ClusterState}} props
 */
function Cluster({ state }) {
  const { shards, groups } = state;
  const replicas = groups ? Math.max(1, ...groups.map((group) => group.holders.length)) : 1;
  /** @param {number} shard @param {number} replica */
  const holderOf = (shard, replica) => {
    if (!groups) return { name: "this process", state: "open" };
    const group = groups.find((one) => one.shards.includes(shard));
    const name = group?.holders[replica];
    if (!group || name === undefined) return { name: "", state: "missing" };
    return { name, state: group.suspects.includes(name) ? "suspect" : "open" };
  };
  return html`<section class="card"><h3>Version ${state.version}: ${counted(shards.length, "shard")} × ${counted(replicas, "replica")}</h3>
    <${Table} label="shards and replicas" kind="grid"><thead><tr><td></td>${shards.map(
      (one) => html`<th scope="col">shard ${one.shard}<br /><span class="quiet">${counted(one.rows, "row")}</span></th>`,
    )}</tr></thead><tbody>${Array.from({ length: replicas }, (_, replica) => html`<tr><th scope="row">replica ${replica}</th>${shards.map(({ shard }) => {
      const { name, state } = holderOf(shard, replica);
      return html`<td class=${state === "open" ? "good" : "bad"}>${state}<br /><span class="quiet">${name}</span></td>`;
    })}</tr>`)}</tbody><//>
    ${groups && html`<${Facts} facts=${[
      ["waiting", number(state.queued)], ["answered", number(state.answered)], ["batches", number(state.batches)],
      ["hedges", number(state.hedges)], ["failovers", number(state.failovers)], ["second rounds", number(state.second_rounds)],
    ]} />`}</section>`;
}

/** @param {any} facts */
const factsOf = (facts) => [
  ["items", number(facts.items)],
  ["kind", facts.definition.kind],
  ["bits", facts.n_bits === null ? "not fitted yet" : number(facts.n_bits)],
  facts.cluster ? ["version", number(facts.seq)] : ["last change", `no. ${number(facts.seq)}`],
  facts.checkpoint && ["checkpoint", `${duration(facts.checkpoint.age_seconds)} ago`],
  facts.checkpoint && ["changed since", number(facts.checkpoint.changes_since)],
  ["state", facts.disk_full ? html`<span class="bad">disk full</span>` : facts.ready ? "ready" : html`<span class="bad">rebuilding</span>`],
];

/** @param {ViewProps} props */
export function Health({ listed, about, again, reload }) {
  const path = ofCollection(listed.name);
  const [state, setState] = useState(/** @type {Measured} */ ({ facts: null, routes: null, per_second: null, error: "" }));
  useEffect(() => {
    let ended = false;
    let timer = 0;
    let mayRead = true;
    let before = { count: NaN, at: 0 };
    const look = async () => {
      try {
        const facts = await ask({ method: "GET", path });
        // A key of one collection may not read the metrics of all.
        const text = mayRead ? await metrics().catch((refused) => {
          if (refused.status !== 403) throw refused;
          mayRead = false;
          return null;
        }) : null;
        if (ended) return;
        const routes = text === null ? null : routesOf(text);
        const now = { count: routes?.reduce((sum, one) => sum + one.count, 0) ?? NaN, at: performance.now() };
        const per_second = (1000 * (now.count - before.count)) / (now.at - before.at);
        before = now;
        setState({ facts, routes, per_second: per_second >= 0 && Number.isFinite(per_second) ? per_second : null, error: "" });
        reload();
      } catch (refused) {
        if (ended) return;
        const { message, status } = refused;
        setState((old) => ({ ...old, error: status === 0 ? "" : message }));
        if (status === 404) reload();
      }
      if (!ended) timer = setTimeout(look, EVERY_MS);
    };
    look();
    return () => {
      ended = true;
      clearTimeout(timer);
    };
  }, [path, again]);
  const { facts, routes, per_second, error } = state;
  return html`<div><${Problem} error=${error} /><${Waiting} busy=${!facts && !error} />
    ${facts && html`<h2>Collection <bdi>${listed.name}</bdi></h2><${Facts} facts=${factsOf(facts)} />
      ${facts.cluster ? html`<${Cluster} state=${facts.cluster} />`
        : facts.memory ? html`<${Memory} memory=${facts.memory} />`
          : html`<p class="quiet">It has no index yet; one is built once there are enough items to learn from.</p>`}
      <h2>Server</h2><${Facts} facts=${[
        ["version", about.version],
        ["uptime", duration(about.uptime_seconds)],
        ["kernel", about.kernel],
        ["threads", about.threads],
        ["accepts changes", about.read_only ? "no" : "yes"],
        ["accepts text", about.embedder ? "yes" : "no"],
      ]} />
      ${routes ? html`<${Requests} routes=${routes} per_second=${per_second} />`
        : html`<p class="quiet">This key may not read the metrics of the server.</p>`}`}
    <${Snippet} requests=${[{ method: "GET", path }, { method: "GET", path: "/v1" }, ...(routes ? [{ method: "GET", path: "/metrics" }] : [])]} /></div>`;
}
