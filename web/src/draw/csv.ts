// Tables as other programs read them (RFC 4180): commas, quotes where a value needs them, CRLF.
export type Cell = string | number | null | undefined;

function cell(value: Cell): string {
  if (value === null || value === undefined || (typeof value === 'number' && Number.isNaN(value))) return '';
  const text = String(value);
  // A spreadsheet would run what begins like a formula.
  const safe = typeof value === 'string' && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function csvOf(header: readonly string[], rows: Iterable<readonly Cell[]>): string {
  const lines = [header.map(cell).join(',')];
  for (const row of rows) lines.push(row.map(cell).join(','));
  return `${lines.join('\r\n')}\r\n`;
}
