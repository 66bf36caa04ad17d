// Data that several modules share, and what parts of the page are given, for `tsc`: modules name
// these types without importing them. Browsers never load this file.

/** A filter that clicks make: each field has this value. */
type Filter = Record<string, Plain>;
type Plain = string | number | boolean | null;
/** What the address of the page says. */
type Place = { view: string; collection: string; typed: string; k: number; filter: Filter };
/** What is typed into the one box. */
type Query = { text?: string; id?: string; key?: string; vector?: number[] };

/** A request to the server; `file` is the name of a file that it sends. */
type Asked = { method: string; path: string; body?: unknown; file?: string };
/** What the server refused, or that it did not answer. */
type Refused = import("./api.js").Refused;
type Listed = { name: string; kind: string; items: number; seq: number; cluster: boolean };
type Fields = Record<string, unknown>;
type Item = { id: string; key?: string; payload?: Fields };
type Hit = Item & { distance: number };
/** An item on the page, with its distance if that is known. */
type Shown = Item & { distance?: number };
type Found = {
  hits: Hit[]; exact: boolean; complete: boolean; took_us: number; engine_us: number; plan?: string;
};
/** What a bit costs if it is 0 and if it is 1. */
type Pair = [number, number];
type Costs = Pair[];
/** The bits of an item, as "0" and "1", and what each pays. */
type Bits = { bits: string; pays: number[] };
type Distances = { counts: number[]; edges: number[]; min: number; max: number };
/** How a search ran; a cluster says only its plan and the reason. */
type Plan = {
  plan: string; reason: string; segments: Segment[]; counters: Record<string, number>; predicted_us: number;
  scan_us: number; engine_us: number; searches: number; searches_by_bands: number; pages: number; pages_from_disk: number;
};
type Explained = {
  plan: Plan; hits: Hit[]; costs: Costs; bits: Record<string, Bits>;
  histogram: Distances | null; exact: boolean;
};
type Job = {
  id: string; collection: string; state: string; rows: number; done: number; written: number;
  failed: number; errors: Record<string, unknown>[]; detail: string; seconds: number;
};
/** What the server says of itself. */
type About = { embedder: boolean } & Record<string, any>;
/** What is known of it; `about` is null until it has answered. */
type Server = { about: About | null; collections: Listed[]; error: string };
/** What a search knows of a segment. */
type Segment = {
  rows: number; removed_rows: number; bands: number; wanted_bands: number; band_bits: number;
  covered_bits: number; decision: string; layout: string;
};
type Shard = { shard: number; rows: number; bytes: number };
/** Shards that the same processes hold. */
type Group = { shards: number[]; holders: string[]; suspects: string[] };
type ClusterState = {
  version: number; rows: number; url: string | null; shards: Shard[]; groups?: Group[];
} & Record<string, any>;
/** A column of a parquet file. */
type Column = { name: string; type: string };
/** A node of a parquet file's schema: a column, or a part of a nested one. */
type SchemaNode = { name: string; type: number; children: number; meaning: string };
/** A file to import: which column has the ids or keys, which the vectors or codes, and which are payload. */
type Chosen = {
  file: File; rows: number; columns: Column[]; by: "id" | "key"; name: string; value: string; payload: string[];
};
/** Requests by route; p99 in seconds. */
type Route = { route: string; count: number; failed: number; p99: number };
/** What the health view shows; null before the first answer, and what the key may not read. */
type Measured = {
  facts: any; routes: Route[] | null; per_second: number | null; error: string;
};
/** What the browse view shows: items, and the id after which the next ones begin. */
type Listing = { items: Item[] | null; next: string | null; error: string };
/** Factors of weights by bit; 1 for those that are not there. */
type Factors = Record<number, number>;

/** What is done when somebody clicks a value of a payload. */
type Choose = (name: string, value: Plain) => void;
/** An item to show, and what is shown of it. */
type HitProps = {
  item: Shown; rank?: number; mark?: any; more?: (id: string) => void; choose?: Choose; brief?: boolean; children?: any;
};
/** What is called how, or nothing. */
type Fact = [string, any];
/** An amount that is shown as a bar beside its text. */
type Amount = { name: string; amount: number; text: any; kind?: string };
/** What every view is given. */
type ViewProps = {
  place: Place; listed: Listed; about: About; query: Query | null; again: number;
  go: Go; more: (id: string) => void; choose?: Choose;
  reload: () => Promise<void>;
};
type Go = (change: Partial<Place>) => void;
type HeaderProps = { place: Place; collections: Listed[]; go: Go };
type BoxProps = { place: Place; embedder: boolean; go: Go; error: string };
type StripProps = { id: string; item: Bits; costs: Costs; order: number[]; low?: boolean };
/** `newest` is the item that was asked for last, which is compared at once. */
type CompareProps = { explained: Explained; shown: Shown[]; order: number[]; newest: string | undefined };
type PairProps = { explained: Explained; pair: [Shown, Shown]; order: number[] };
type BarsProps = { weights: number[]; order: number[]; factors: Factors; change: (changes: Factors) => void };
/** Where a pointer was last, over which bar, and whether it is drawing. */
type Drag = { x: number; y: number; place: number; moved: boolean };
/** A histogram as it is drawn. */
type Drawn = { counts: number[]; edges: number[]; kth: number; log: boolean; width: number };
