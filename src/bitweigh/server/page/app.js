// @ts-check
// The frame of the page: which view, collection and query; the key; whether the server answers.
import { html, render, useEffect, useState } from "./vendor/standalone.module.js";
import { answers, ask, key, listeners, ofCollection } from "./api.js";
import { Browse } from "./browse.js";
import { Health } from "./health.js";
import { How } from "./how.js";
import { Import } from "./import.js";
import { Problem } from "./parts.js";
import { queryOf } from "./query.js";
import { Search } from "./search.js";
import { Weights } from "./weights.js";
import { Why } from "./why.js";

/** @typedef {import("./query.js").Query} Query */

/** @type {Record<string, {title: string, view: any, asks: boolean}>} */
const VIEWS = {
  search: { title: "Search", view: Search, asks: true },
  why: { title: "Why", view: Why, asks: true },
  weights: { title: "Weights", view: Weights, asks: true },
  how: { title: "How", view: How, asks: true },
  browse: { title: "Browse", view: Browse, asks: false },
  import: { title: "Import", view: Import, asks: false },
  health: { title: "Health", view: Health, asks: false },
};
const RETRY_MS = 1500;
const MOST_HITS = 100;

/** What the address says: #view?c=collection&q=query&k=10. */
function place() {
  const [view, rest] = location.hash.slice(1).split("?", 2);
  const query = new URLSearchParams(rest ?? "");
  return {
    view: VIEWS[view] ? view : "search",
    collection: query.get("c") ?? "",
    typed: query.get("q") ?? "",
    k: Math.min(MOST_HITS, Math.max(1, Number(query.get("k")) || 10)),
  };
}

/** @typedef {ReturnType<typeof place>} Place */

/** @param {Place} at */
function address({ view, collection, typed, k }) {
  return `#${view}?${new URLSearchParams({ c: collection, q: typed, k: String(k) })}`;
}

/** @param {{wrong: boolean, done: () => void}} props */
function KeyForm({ wrong, done }) {
  const [typed, setTyped] = useState("");
  return html`<form class="key-form" onSubmit=${(/** @type {any} */ event) => {
    event.preventDefault();
    key.set(typed.trim());
    done();
  }}><h2>A key is needed</h2>
    <p>The operator of this server has keys. This tab remembers yours until it is closed.</p>
    ${wrong && html`<${Problem} error="The server does not know this key." />`}
    <p class="row"><label>Key <input type="password" autocomplete="off" autofocus value=${typed}
      onInput=${(/** @type {any} */ event) => setTyped(event.target.value)} /></label>
    <button class="main" disabled=${!typed.trim()}>Use it</button></p></form>`;
}

/** @param {{at: Place, embedder: boolean, go: (change: Partial<Place>) => void, error: string}} props */
function Box({ at, embedder, go, error }) {
  const [typed, setTyped] = useState(at.typed);
  const [k, setK] = useState(String(at.k));
  useEffect(() => setTyped(at.typed), [at.typed]);
  return html`<form role="search" onSubmit=${(/** @type {any} */ event) => {
    event.preventDefault();
    go({ typed, k: Math.min(MOST_HITS, Math.max(1, Number(k) || 10)) });
  }}><div class="row box"><label class="grow"><span class="said">What to look for</span>
      <input type="search" dir="auto" value=${typed} placeholder=${embedder ? "text, #id or [0.5, -1.2, …]" : "#id or [0.5, -1.2, …]"}
        onInput=${(/** @type {any} */ event) => setTyped(event.target.value)} /></label>
    <label>k <input type="number" min="1" max=${MOST_HITS} value=${k}
      onInput=${(/** @type {any} */ event) => setK(event.target.value)} /></label>
    <button class="main">Search</button></div><${Problem} error=${error} /></form>`;
}

/** Where to begin, while nothing is asked. @param {{collection: string, again: number, more: (id: string) => void}} props */
function Begin({ collection, again, more }) {
  const [first, setFirst] = useState(/** @type {string | null} */ (null));
  useEffect(() => {
    ask({ method: "GET", path: `${ofCollection(collection)}/items?limit=1` }).then(
      ({ items }) => setFirst(items[0]?.id ?? null),
      () => {},
    );
  }, [collection, again]);
  if (first === null) return null;
  return html`<p>Type what to look for, or start from an item:
    ${" "}<button type="button" onClick=${() => more(first)}>More like #${first}</button></p>`;
}

/** @param {{at: Place, names: string[], go: (change: Partial<Place>) => void}} props */
function Header({ at, names, go }) {
  return html`<header><h1>bitweigh</h1>
    ${names.length > 0 && html`<label>Collection <select value=${at.collection}
      onChange=${(/** @type {any} */ event) => go({ collection: event.target.value, typed: "" })}>
      ${names.map((name) => html`<option value=${name}>${name}</option>`)}</select></label>`}
    ${key.get() && html`<button type="button" class="small" onClick=${() => {
      key.forget();
      location.reload();
    }}>Forget the key</button>`}
    <nav aria-label="Views">${Object.entries(VIEWS).map(
      ([view, { title }]) => html`<a key=${view} href=${address({ ...at, view })}
        aria-current=${view === at.view ? "page" : undefined}>${title}</a>`,
    )}</nav></header>`;
}

function App() {
  const [at, setAt] = useState(place);
  const [server, setServer] = useState({ about: /** @type {any} */ (null), names: /** @type {string[]} */ ([]) });
  const [needsKey, setNeedsKey] = useState(false);
  const [gone, setGone] = useState(false);
  const [again, setAgain] = useState(0);
  useEffect(() => {
    listeners.refused = (error) => (error.status === 401 ? setNeedsKey(true) : setGone(true));
    const moved = () => setAt(place());
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  useEffect(() => {
    Promise.all([ask({ method: "GET", path: "/v1" }), ask({ method: "GET", path: "/v1/collections" })]).then(
      ([about, { collections }]) => setServer({ about, names: collections.map((/** @type {any} */ one) => one.name) }),
      () => {},
    );
  }, [again]);
  useEffect(() => {
    if (!gone) return undefined;
    const timer = setInterval(async () => {
      if (!(await answers())) return;
      setGone(false);
      setAgain((count) => count + 1);
    }, RETRY_MS);
    return () => clearInterval(timer);
  }, [gone]);
  const { about, names } = server;
  const collection = names.includes(at.collection) ? at.collection : (names[0] ?? "");
  const here = { ...at, collection };
  /** @param {Partial<Place>} change */
  const go = (change) => {
    location.hash = address({ ...here, ...change });
  };
  /** @param {string} id */
  const more = (id) => go({ view: "search", typed: `#${id}` });
  const { view: View, asks, title } = VIEWS[at.view];
  useEffect(() => {
    document.title = `${title} · bitweigh`;
  }, [title]);
  let query = /** @type {Query | null} */ (null);
  let wrong = "";
  if (at.typed && about) {
    try {
      query = queryOf(at.typed, about.embedder);
    } catch (error) {
      wrong = /** @type {Error} */ (error).message;
    }
  }
  return html`<a class="skip" href="#main" onClick=${(/** @type {any} */ event) => {
      event.preventDefault();
      document.getElementById("main")?.focus();
    }}>To the content</a>
    <${Header} at=${here} names=${names} go=${go} />
    <main id="main" tabindex="-1">
      <div role="status">${gone && html`<p class="problem">The server does not answer. This page tries again until it does.</p>`}</div>
      ${needsKey
        ? html`<${KeyForm} wrong=${key.get() !== ""} done=${() => {
            setNeedsKey(false);
            setAgain(again + 1);
          }} />`
        : about && !names.length
          ? html`<p>This server has no collections yet: <code>PUT /v1/collections/NAME</code> creates one.</p>`
          : about && html`${asks && html`<${Box} at=${here} embedder=${about.embedder} go=${go} error=${wrong} />`}
            ${asks && !at.typed && html`<${Begin} collection=${collection} again=${again} more=${more} />`}
            <${View} key=${`${at.view} ${collection}`} collection=${collection} query=${query} k=${at.k} again=${again}
              more=${more} />`}
    </main>`;
}

const root = /** @type {Element} */ (document.getElementById("app"));
root.replaceChildren();
render(html`<${App} />`, root);
