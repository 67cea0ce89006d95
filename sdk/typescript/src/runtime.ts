/** Node, Bun and Deno have node: modules; an edge runtime may have none. Nothing here is loaded before it is used. */

interface Process {
  env?: Record<string, string | undefined>;
  getBuiltinModule?: (name: string) => unknown;
}

const process = (globalThis as { process?: Process }).process;

/** Undefined where the runtime does not have it. */
export async function builtin<T>(name: string): Promise<T | undefined> {
  try {
    // The name is a variable, so that no bundler for an edge tries to resolve it.
    return (process?.getBuiltinModule?.(name) ?? (await import(/* @vite-ignore */ /* webpackIgnore: true */ name))) as T;
  } catch {
    return undefined;
  }
}

export function environment(name: string): string | undefined {
  return process?.env?.[name];
}
