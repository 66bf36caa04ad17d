// @ts-check
// The address of the page: view, collection, query and filter, so that it can be kept and sent.

export const MAX_HITS = 100;
const DEFAULT_HITS = 10;

/** @param {Filter} filter */
export const isEmpty = (filter) => !Object.keys(filter).length;

/**
 * A number of hits within what the page shows.
 * @param {unknown} typed
 */
export const hitsOf = (typed) =>
  Math.min(MAX_HITS, Math.max(1, Math.floor(Number(typed)) || DEFAULT_HITS));

/** @param {string | null} text */
function filterOf(text) {
  try {
    const found = JSON.parse(text ?? "{}");
    return found && typeof found === "object" && !Array.isArray(found) ? found : {};
  } catch {
    return {};
  }
}

/**
 * What an address says: #view?c=collection&q=query&k=10&f={"lang":"de"}.
 * @param {string} hash
 */
export function placeOf(hash) {
  const [, view, rest] = /^#?([^?]*)\??(.*)/s.exec(hash) ?? ["", "", ""];
  const query = new URLSearchParams(rest);
  return {
    view,
    collection: query.get("c") ?? "",
    typed: query.get("q") ?? "",
    k: hitsOf(query.get("k")),
    filter: filterOf(query.get("f")),
  };
}

/** @param {Place} place */
export function addressOf({ view, collection, typed, k, filter }) {
  const query = new URLSearchParams({ c: collection });
  if (typed) query.set("q", typed);
  if (k !== DEFAULT_HITS) query.set("k", String(k));
  if (!isEmpty(filter)) query.set("f", JSON.stringify(filter));
  return `#${view}?${query}`;
}
