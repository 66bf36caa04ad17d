// @ts-check
// The costs of a query: what each bit weighs, what a code pays for it, and costs made from others.

/** @param {Pair} pair */
export const weightOf = ([zero, one]) => Math.abs(zero - one);

/**
 * What the cheaper value of a bit pays.
 * @param {Pair} pair
 */
export const leastOf = ([zero, one]) => Math.min(zero, one);

/**
 * The value of a bit that the query asks for.
 * @param {Pair} pair
 */
export const askedFor = ([zero, one]) => (zero <= one ? 0 : 1);

/**
 * Bits in descending weight, ties by place.
 * @param {Costs} costs
 */
export const byWeight = (costs) =>
  costs.map((_, bit) => bit).sort((a, b) => weightOf(costs[b]) - weightOf(costs[a]) || a - b);

/**
 * What a bit of an item pays above the cheaper of its values.
 * @param {Bits} item
 * @param {Costs} costs
 * @param {number} bit
 */
export const extraOf = (item, costs, bit) => item.pays[bit] - leastOf(costs[bit]);

/**
 * The bits of an item that pay, most expensive first.
 * @param {Bits} item
 * @param {Costs} costs
 */
export const payingBits = (item, costs) =>
  costs
    .map((_, bit) => bit)
    .filter((bit) => extraOf(item, costs, bit) > 0)
    .sort((a, b) => extraOf(item, costs, b) - extraOf(item, costs, a) || a - b);

/**
 * A sum in the order that defines distances: groups of 8 bits, then the groups.
 * @param {number[]} values
 */
export function sumOf(values) {
  let total = 0;
  for (let first = 0; first < values.length; first += 8) {
    let group = 0;
    for (const value of values.slice(first, first + 8)) group += value;
    total += group;
  }
  return total;
}

/**
 * Costs with other weights. The cheaper value of each bit stays what it is, and pays what it paid.
 * @param {Costs} costs
 * @param {(weight: number, bit: number) => number} weigh
 * @returns {Costs}
 */
export const reweighed = (costs, weigh) =>
  costs.map((pair, bit) => {
    const before = weightOf(pair);
    const weight = weigh(before, bit);
    // Adding could round: a pair whose weight stays is kept as it is.
    if (weight === before) return pair;
    const low = leastOf(pair);
    const high = low + weight;
    return pair[0] <= pair[1] ? [low, high] : [high, low];
  });

/**
 * The same query under plain Hamming distance: each bit that differs costs 1.
 * @param {Costs} costs
 * @returns {Costs}
 */
export const hamming = (costs) => costs.map((pair) => (askedFor(pair) ? [1, 0] : [0, 1]));

/**
 * Weights to a power above 0, with the same sum: 1 changes nothing, below it light bits count for
 * more, and above it heavy ones.
 * @param {Costs} costs
 * @param {number} power
 * @returns {(weight: number) => number}
 */
export function contrast(costs, power) {
  if (power === 1) return (weight) => weight;
  const heaviest = Math.max(...costs.map(weightOf));
  if (!heaviest) return (weight) => weight;
  /** @param {number} weight */
  const raised = (weight) => (weight / heaviest) ** power;
  const before = costs.reduce((sum, pair) => sum + weightOf(pair), 0);
  const after = costs.reduce((sum, pair) => sum + raised(weightOf(pair)), 0);
  return (weight) => (raised(weight) * before) / after;
}
