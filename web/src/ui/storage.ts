// What survives a reload. Storage may be full, forbidden or from an older page: then the default is what there is.

const prefix = 'routing.';

export function recall<T>(name: string, fallback: T, isValid: (value: unknown) => value is T): T {
  try {
    const text = localStorage.getItem(prefix + name);
    if (text === null) return fallback;
    const value: unknown = JSON.parse(text);
    return isValid(value) ? value : fallback;
  } catch {
    return fallback;
  }
}

// False where it could not be kept, which nobody has to be told: the page works on without.
export function keep(name: string, value: unknown): boolean {
  try {
    localStorage.setItem(prefix + name, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}

export const isString = (value: unknown): value is string => typeof value === 'string';
export const isBoolean = (value: unknown): value is boolean => typeof value === 'boolean';
export const isRecord = (value: unknown): value is Record<string, unknown> =>
    typeof value === 'object' && value !== null && !Array.isArray(value);
