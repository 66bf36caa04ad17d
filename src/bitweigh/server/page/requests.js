// @ts-check
// What every view is given, and the requests that several views send.
import { ofCollection } from "./api.js";

/**
 * @typedef {import("./address.js").Filter} Filter
 * @typedef {import("./address.js").Place} Place
 * @typedef {import("./api.js").Request} Request
 * @typedef {import("./query.js").Query} Query
 * @typedef {{name: string, kind: string, items: number, seq: number, cluster: boolean}} Listed
 * @typedef {{place: Place, listed: Listed, query: Query | null, again: number,
 *   go: (change: Partial<Place>) => void, more: (id: string) => void,
 *   choose?: import("./payload.js").Choose, looked: () => Promise<void>}} ViewProps
 */

/** @param {Filter} filter */
const isEmpty = (filter) => !Object.keys(filter).length;

/**
 * A query with what every request for hits says. Items of a cluster have no payloads.
 * @param {ViewProps} props
 */
function bodyOf({ place, listed, query }) {
  const { k, filter } = place;
  if (listed.cluster) return { ...query, k };
  return { ...query, k, ...(isEmpty(filter) ? {} : { filter }), payload: true };
}

/**
 * @param {ViewProps} props
 * @returns {Request | null}
 */
export const searchRequest = (props) =>
  props.query && {
    method: "POST",
    path: `${ofCollection(props.listed.name)}/search`,
    body: bodyOf(props),
  };

/**
 * @param {ViewProps} props
 * @param {{k?: number, bins?: number, ids?: string[]}} [more] by default without a histogram
 * @returns {Request | null}
 */
export const explainRequest = (props, more = {}) =>
  props.query && {
    method: "POST",
    path: `${ofCollection(props.listed.name)}/explain`,
    body: { ...bodyOf(props), bins: 0, ...more },
  };

/**
 * The same search with costs of one's own. An item that is asked for by its id is no hit of its
 * own; by costs it is one, so one more is asked for, and `othersOf` leaves it out.
 * @param {ViewProps} props
 * @param {import("./costs.js").Costs} costs
 * @returns {Request}
 */
export const costsRequest = (props, costs) => ({
  method: "POST",
  path: `${ofCollection(props.listed.name)}/search`,
  body: { ...bodyOf({ ...props, query: null }), costs, k: props.place.k + (asksItem(props.query) ? 1 : 0) },
});

/** @param {Query | null} query */
const asksItem = (query) => query?.id !== undefined || query?.key !== undefined;

/**
 * Hits by costs without the item that the query names.
 * @param {ViewProps} props
 * @param {import("./api.js").Hit[]} hits
 */
export const othersOf = ({ query, place }, hits) =>
  hits
    .filter((hit) => hit.id !== query?.id && (query?.key === undefined || hit.key !== query.key))
    .slice(0, place.k);
