// @ts-check
// What every view is given, and the requests that several views send.
import { isEmpty } from "./address.js";
import { ofCollection } from "./api.js";

/** Said where hits may stand in another order than in Search. */
export const BY_CODES = "Here hits are ranked by their codes; Search ranks them again by the vectors.";

/**
 * A query with what every request for hits says. Items of a cluster have no payloads.
 * @param {ViewProps} props
 */
function bodyOf({ place, listed, query }) {
  const { k, filter } = place;
  if (listed.cluster) return { ...query, k };
  return { ...query, k, ...(isEmpty(filter) ? {} : { filter }), payload: true };
}

/** @param {ViewProps} props */
export const searchRequest = (props) =>
  props.query && {
    method: "POST",
    path: `${ofCollection(props.listed.name)}/search`,
    body: bodyOf(props),
  };

/**
 * @param {ViewProps} props
 * @param {{k?: number, bins?: number, ids?: string[]}} [more] by default without a histogram
 */
export const explainRequest = (props, more = {}) =>
  props.query && {
    method: "POST",
    path: `${ofCollection(props.listed.name)}/explain`,
    body: { ...bodyOf(props), bins: 0, ...more },
  };

/**
 * The same search with other costs. A search by id leaves out its own item, and a search by costs
 * does not: it asks for one more hit, and `othersOf` leaves the item out.
 * @param {ViewProps} props
 * @param {Costs} costs
 */
export const costsRequest = (props, costs) => ({
  method: "POST",
  path: `${ofCollection(props.listed.name)}/search`,
  body: { ...bodyOf({ ...props, query: null }), costs, k: props.place.k + (asksItem(props.query) ? 1 : 0) },
});

/** @param {Query | null} query */
export const asksItem = (query) => query?.id !== undefined || query?.key !== undefined;

/**
 * Hits by costs without the item that the query names.
 * @param {ViewProps} props
 * @param {Hit[]} hits
 */
export const othersOf = ({ query, place }, hits) =>
  hits
    .filter((hit) => hit.id !== query?.id && (query?.key === undefined || hit.key !== query.key))
    .slice(0, place.k);
