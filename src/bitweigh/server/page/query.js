// @ts-check
// What is typed into the one box, as a query: text, "#id" or "#key", or a vector as JSON.

/** @typedef {{text?: string, id?: string, key?: string, vector?: number[]}} Query */

/**
 * The query that was typed; raises Error that says what is wrong.
 * @param {string} typed @param {boolean} embedder whether the server takes text
 * @returns {Query}
 */
export function queryOf(typed, embedder) {
  const text = typed.trim();
  if (!text) throw new Error("Type what to look for.");
  if (text.startsWith("#")) {
    const name = text.slice(1).trim();
    if (!name) throw new Error("Type an id or a key after #.");
    return /^\d+$/.test(name) ? { id: name } : { key: name };
  }
  if (text.startsWith("[")) {
    let found;
    try {
      found = JSON.parse(text);
    } catch {
      throw new Error("A vector is a JSON list of numbers, such as [0.5, -1.25, 3].");
    }
    if (!Array.isArray(found) || !found.every((one) => typeof one === "number"))
      throw new Error("A vector must have numbers only.");
    return { vector: found };
  }
  if (!embedder)
    throw new Error("This server has no embedder for text: type #id, or a vector as JSON.");
  return { text };
}

/** @param {[number, number]} pair */
export const weightOf = ([zero, one]) => Math.abs(zero - one);

/** @param {[number, number]} pair what the cheaper value of a bit pays */
export const least = ([zero, one]) => Math.min(zero, one);

/**
 * Bits in descending weight, ties by place.
 * @param {[number, number][]} costs @returns {number[]}
 */
export function byWeight(costs) {
  return costs.map((_, bit) => bit).sort((a, b) => weightOf(costs[b]) - weightOf(costs[a]) || a - b);
}

/**
 * Costs whose weights are multiplied; what the cheaper value of each bit pays stays.
 * @param {[number, number][]} costs @param {Record<number, number>} factors by bit, 1 if missing
 * @returns {[number, number][]}
 */
export function scaled(costs, factors) {
  return costs.map((pair, bit) => {
    const factor = factors[bit] ?? 1;
    if (factor === 1) return pair;
    const low = least(pair);
    const dear = low + weightOf(pair) * factor;
    return pair[0] <= pair[1] ? [low, dear] : [dear, low];
  });
}

/**
 * The same query under plain Hamming distance: each bit that differs costs 1.
 * @param {[number, number][]} costs @returns {[number, number][]}
 */
export const hamming = (costs) => costs.map(([zero, one]) => (zero <= one ? [0, 1] : [1, 0]));
