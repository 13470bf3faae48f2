// Hands a file to the reader.
export function download(name: string, content: Blob | string, type = 'text/plain'): void {
  const blob = typeof content === 'string' ? new Blob([content], {type: `${type};charset=utf-8`}) : content;
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

// A name that every system takes.
export function fileName(...parts: string[]): string {
  return parts.join('-').replace(/[^\w.]+/g, '-').replace(/^-+|-+$/g, '');
}
