// @ts-check
// Requests by route, read from the server's metrics in Prometheus's format.

const LINE = /^(\w+)\{(.*)\} (\S+)$/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

/**
 * The p99 of a route, in seconds, is the end of the bucket that holds it, so it is at most that.
 * @param {string} text
 */
export function routesOf(text) {
  /** @type {Map<string, {count: number, failed: number, buckets: [number, number][]}>} */
  const found = new Map();
  for (const line of text.split("\n")) {
    const parts = LINE.exec(line);
    if (!parts) continue;
    const { route, status, le } = Object.fromEntries([...parts[2].matchAll(LABEL)].map((one) => [one[1], one[2]]));
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
    .sort((a, b) => b.count - a.count || (a.route < b.route ? -1 : 1));
}
