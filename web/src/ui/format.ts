// Numbers and times as people read them.

const thin = '\u202F';

// 32,000
export function whole(value: number): string {
  return Math.round(value).toString().replace(/\B(?=(\d{3})+(?!\d))/g, ',');
}

// 0.47 M, 12.3 k: three digits and what they count.
export function compact(value: number): string {
  const size = Math.abs(value);
  const [unit, name] = size >= 1e9 ? [1e9, 'G'] : size >= 1e5 ? [1e6, 'M'] : size >= 1e4 ? [1e3, 'k'] : [1, ''];
  if (unit === 1) return Number.isInteger(value) ? whole(value) : digits(value, 3);
  return `${digits(value / unit, 3)}${thin}${name}`;
}

// 231 k, 5.2 M: as compact(), with the unit that leaves one to three digits before the point.
export function scaled(value: number): string {
  const size = Math.abs(value);
  const [unit, name] = size >= 1e9 ? [1e9, 'G'] : size >= 1e6 ? [1e6, 'M'] : size >= 1e4 ? [1e3, 'k'] : [1, ''];
  return unit === 1 ? compact(value) : `${Number((value / unit).toPrecision(3))}${thin}${name}`;
}

// So many significant digits, without an exponent between 1e-4 and 1e7.
export function digits(value: number, count: number): string {
  if (value === 0) return '0';
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'no number' : value > 0 ? 'infinite' : '−infinite';
  const size = Math.abs(value);
  if (size < 1e-4 || size >= 1e7) return value.toExponential(Math.max(0, count - 1)).replace('e-', 'e−').replace('e+', 'e');
  const after = Math.max(0, count - 1 - Math.floor(Math.log10(size)));
  return value.toFixed(Math.min(after, 12)).replace(/^-/, '−');
}

// 12.3 %, 0.04 %
export function percent(share: number): string {
  const value = share * 100;
  if (value > 0 && value < 0.01) return `<${thin}0.01${thin}%`;
  return `${value >= 99.95 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2)}${thin}%`;
}

// 42 s, 3 min 20 s, 2 h 05 min
export function duration(seconds: number): string {
  if (seconds < 1) return `${Math.round(seconds * 1000)}${thin}ms`;
  if (seconds < 10) return `${seconds.toFixed(1)}${thin}s`;
  const all = Math.round(seconds);
  if (all < 60) return `${all}${thin}s`;
  const two = (value: number) => String(value).padStart(2, '0');
  if (all < 3600) return `${Math.floor(all / 60)}${thin}min ${two(all % 60)}${thin}s`;
  const minutes = Math.round(all / 60);
  return `${Math.floor(minutes / 60)}${thin}h ${two(minutes % 60)}${thin}min`;
}

export function ago(time: string, now: number): string {
  const seconds = (now - Date.parse(time)) / 1000;
  if (!Number.isFinite(seconds)) return '';
  if (seconds < 5) return 'now';
  if (seconds < 60) return `${Math.round(seconds)}${thin}s ago`;
  if (seconds < 3600) return `${Math.round(seconds / 60)}${thin}min ago`;
  if (seconds < 86400 * 2) return `${Math.round(seconds / 3600)}${thin}h ago`;
  return `${Math.round(seconds / 86400)} days ago`;
}

// A token as one sees it: spaces and ends of lines have signs.
export function visible(text: string): string {
  if (text === '') return '∅';
  return text.replace(/ /g, '␣').replace(/\n/g, '↵').replace(/\t/g, '⇥').replace(/\r/g, '␍')
      .replace(/[\u0000-\u001F]/g, (sign) => `\\x${sign.charCodeAt(0).toString(16).padStart(2, '0')}`);
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${whole(count)} ${count === 1 ? one : many}`;
}
