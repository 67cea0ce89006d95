import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, beforeEach } from "node:test";
import { close, configure } from "../src/index.js";

/** The place that tools change: a file that each act appends to. It is counted, whatever the ledger says. */
export class World {
  readonly directory = mkdtempSync(join(tmpdir(), "semel-"));
  readonly ledger = join(this.directory, "ledger.db");
  readonly file = join(this.directory, "acts");

  act(what: string): void {
    appendFileSync(this.file, `${what}\n`);
  }

  acts(): string[] {
    return existsSync(this.file) ? readFileSync(this.file, "utf8").split("\n").slice(0, -1) : [];
  }
}

/** A new world with a ledger of its own for each test of the file that calls this. */
export function eachInItsWorld(): () => World {
  const worlds: World[] = [];
  beforeEach(async () => {
    await close();
    const world = new World();
    worlds.push(world);
    configure({ ledger: world.ledger });
  });
  after(async () => {
    await close();
    for (const { directory } of worlds) rmSync(directory, { recursive: true, force: true });
  });
  return () => worlds.at(-1)!;
}

/** How a promise ended. */
export async function ending(promise: Promise<unknown>): Promise<{ value?: unknown; error?: any }> {
  return promise.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
}
