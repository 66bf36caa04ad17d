// Data that several modules share, for `tsc`: modules name these types without importing them.
// Browsers never load this file.

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
type Explained = {
  plan: Record<string, any>; hits: Hit[]; costs: Costs; bits: Record<string, Bits>;
  histogram: Distances | null; exact: boolean;
};
type Job = {
  id: string; collection: string; state: string; rows: number; done: number; written: number;
  failed: number; errors: Record<string, unknown>[]; detail: string; seconds: number;
};
/** What the server says of itself. */
type About = { embedder: boolean } & Record<string, unknown>;
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
/** A file to import: which column has the ids or keys, which the vectors or codes, and which are payload. */
type Chosen = {
  file: File; rows: number; columns: Column[]; by: "id" | "key"; name: string; value: string; payload: string[];
};
/** Requests by route; p99 in seconds. */
type Route = { route: string; count: number; failed: number; p99: number };

/** What is done when somebody clicks a value of a payload. */
type Choose = (name: string, value: Plain) => void;
/** An item to show, and what is shown of it. */
type HitProps = {
  item: Shown; rank?: number; mark?: any; more?: (id: string) => void; choose?: Choose; brief?: boolean; children?: any;
};
/** An amount that is shown as a bar beside its text. */
type Amount = { name: string; amount: number; text: any; kind?: string };
/** What every view is given. */
type ViewProps = {
  place: Place; listed: Listed; query: Query | null; again: number;
  go: (change: Partial<Place>) => void; more: (id: string) => void; choose?: Choose;
  looked: () => Promise<void>;
};
