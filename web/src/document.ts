// The document that src/report/page.h describes, as the page reads it.

export type Maybe = number | null;

// Whether an ε is a theorem about what was sent, or what secure noise would have given.
export type Basis = 'proven' | 'simulated';

export interface Measure {
  mean: Maybe[];
  std: Maybe[];
  worst: Maybe[];
  global: Maybe[];
  clients: number[];
  values: Maybe[][]; // [client][evaluation]
}

export interface SpendingCurve {
  clients: number[];
  budget: Maybe;
  claimed: Maybe[];
  proven: Maybe[];
}

export interface View {
  observers: string[];
  rounds: number[];
  curves: SpendingCurve[];
}

export interface Range {
  min: number;
  max: number;
}

export interface GroupNoise {
  what: string;
  group: string;
  coordinates: number;
  sensitivity: Range;
  stddev: Range;
}

export interface ReleaseKind {
  what: string;
  observer: string;
  mechanism: string;
  rows: number;
  clients: number | string;
  multiplier: Range | null;
  why_unproven: string | null;
}

export interface Terms {
  epsilon: number;
  delta: number;
  adjacency: string;
  unit: string;
  observer: string;
}

export interface Privacy {
  problem?: string;
  basis: Basis;
  basis_why?: string | null;
  terms?: Terms | null;
  rows?: number;
  views?: View[];
  noise?: GroupNoise[];
  kinds?: ReleaseKind[];
}

export interface Audit {
  method?: string;
  confidence?: number;
  entries: { client?: number; observer?: string; what?: string; audited_epsilon: number; trials?: number }[];
}

export interface Attack {
  name: string;
  what?: string;
  auc?: number;
  advantage?: number;
  roc?: Roc;
  grid?: string;
  baseline?: { auc?: number; advantage?: number; roc?: Roc; grid?: string };
  reconstructions?: { original: string; reconstructed: string; client?: number; psnr?: number }[];
}

export interface Roc {
  false_positive_rate: number[];
  true_positive_rate: number[];
  low?: number[];
  high?: number[];
}

export interface Embedding {
  title?: string;
  classes?: string[];
  x: number[];
  y: number[];
  label: number[];
}

export interface Partition {
  title: string;
  clients: number;
  classes: string[];
  counts: number[][];
}

export interface Curve {
  curve: { axis?: string; family?: string };
  x: number[];
  y: number[];
  budgets: { client: number; x: number; y: number }[];
}

export interface Run {
  id: string;
  name: string;
  state: 'running' | 'finished' | 'stopped';
  client_names: string[]; // empty: clients go by their numbers
  hash: string;
  config: any;
  config_toml: string;
  environment: Record<string, string | number> | null;
  rounds_done: number;
  resume?: string; // the command that goes on with it; only the live page knows
  summary: any;
  rounds: Record<string, Maybe[]>;
  evaluations: { round: number[]; measures: Record<string, Measure>; domains: Record<string, Maybe[]> };
  privacy: Privacy;
  partition: Partition | null;
  picture: string | null;
  curve: Curve | null;
  audit: Audit | null;
  attacks: Attack[] | null;
  embedding: Embedding | Embedding[] | null;
}

export interface Group {
  label: string;
  settings: string; // the label with all that differs
  series: string;
  runs: number[];
  seeds: number[];
  claimed_epsilon: Maybe;
  proven_epsilon: Maybe;
  basis: Basis;
}

export interface Metric {
  values: number[][];
  mean: Maybe[];
  std: Maybe[];
  p: Maybe[][];
}

export interface Comparison {
  groups: Group[];
  metrics: Record<string, Metric>;
}

export interface PageDocument {
  version: string;
  runs: Run[];
  comparison: Comparison | null;
}
