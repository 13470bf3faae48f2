// The answers of the API, as docs/server.md describes them.

export type ModelKind = 'text' | 'image' | 'symbols';

export interface Model {
  id: string;
  kind?: ModelKind;
  validity?: string;
  data_label?: string;
  parameters?: number | null;
  sequence_length?: number;
  vocabulary?: number;
  tokens?: string;
  width?: number;
  height?: number;
  max_tokens?: number;
  problem?: string;
}

export interface Logprobs {
  tokens: string[];
  token_logprobs: (number | null)[];
  top_logprobs: (Record<string, number> | null)[] | null;
  token_ids?: number[];
}

export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details?: {cached_tokens?: number};
}

export interface CompletionChunk {
  choices: {index: number; text: string; logprobs: Logprobs | null; finish_reason: string | null}[];
  usage?: Usage | null;
  validity?: string;
  error?: {message: string};
}

export interface ImageRow { index: number; row: number; values: number[] }
export interface ImageAnswer {
  width: number;
  height: number;
  validity?: string;
  data: {index: number; b64_json: string; nats?: number}[];
}

export interface HeadInfo { head: number; pattern: string; routed: boolean; clusters: number }
export interface LayerInfo { layer: number; heads: HeadInfo[] }
export interface TokensAnswer { ids: number[]; pieces: string[]; layers: LayerInfo[] }
export interface ClustersAnswer { clusters: number[][] }
export interface Read { position: number; token: string; weight: number }
export interface HeadReads { layer: number; head: number; pattern: string; clusters?: number[]; reads: Read[] }
export interface AttentionAnswer { tokens: number; position: number; predicts: string; heads: HeadReads[] }

export interface Run {
  id: string;
  state?: string;
  name?: string;
  data?: string;
  parameters?: number | null;
  step?: number;
  steps?: number;
  tokens?: number;
  seconds?: number;
  unit?: string | null;
  unit_name?: string | null;
  best?: number | null;
  best_step?: number | null;
  best_split?: string | null;
  validity?: string;
  data_label?: string;
  audit?: string;
  changed?: string;
  problem?: string;
}

// A line of metrics.jsonl: numbers, but for labels and marks.
export type MetricsLine = Record<string, unknown>;
export interface MetricsAnswer { id?: string; from: number; next: number; lines: MetricsLine[] }

export interface ClusterHistory {
  heads: {attention: string; head: number; clusters: number}[];
  steps: number[];
  shares: number[][][];
  dead: number[];
}

export interface Sample { step: number; kind: 'text' | 'image'; text?: string; file?: string }

export interface PatternField { name: string; default: number; least: number; most: number; about?: string }
export interface PatternInfo { name: string; fields: PatternField[]; about?: string }
export interface PatternRow { keys: number[]; groups: number[] }
export interface PatternAnswer { n: number; rows: PatternRow[] }
