// One stop for the Tab key, arrows inside: which element of a row or grid comes next.

export interface Grid { rows: number; columns: number }

// The index that a key leads to, row by row; undefined for keys that do not move. `count` may end inside the last row.
export function moved(key: string, index: number, grid: Grid, count = grid.rows * grid.columns): number | undefined {
  const {columns} = grid;
  const column = index % columns;
  const limit = (next: number) => Math.max(0, Math.min(count - 1, next));
  switch (key) {
    case 'ArrowRight': return limit(index + 1);
    case 'ArrowLeft': return limit(index - 1);
    case 'ArrowDown': return index + columns < count ? index + columns : index;
    case 'ArrowUp': return index - columns >= 0 ? index - columns : index;
    case 'Home': return index - column;
    case 'End': return limit(index - column + columns - 1);
    default: return undefined;
  }
}

// Focuses the element of a container that carries data-index.
export function focusIndex(container: Element | null, index: number): void {
  container?.querySelector<HTMLElement>(`[data-index="${index}"]`)?.focus();
}

// Keys that belong to a field must not do anything else.
export function isTyping(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement | null;
  return !!target && (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.isContentEditable);
}

export function hasModifier(event: KeyboardEvent): boolean {
  return event.ctrlKey || event.metaKey || event.altKey;
}
