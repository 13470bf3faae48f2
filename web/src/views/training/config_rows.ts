// Configurations side by side.
export interface ConfigRow { key: string; values: string[] }

// Of one configuration all keys; of several those whose values are not all the same. Missing keys have an empty value.
export function differing(configs: readonly Readonly<Record<string, string>>[]): ConfigRow[] {
  const keys = [...new Set(configs.flatMap((config) => Object.keys(config)))].sort();
  const rows = keys.map((key) => ({key, values: configs.map((config) => config[key] ?? '')}));
  return configs.length === 1 ? rows : rows.filter((row) => row.values.some((value) => value !== row.values[0]));
}
