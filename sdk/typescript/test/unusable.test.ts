import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { child } from "./children.js";
import { eachInItsWorld } from "./world.js";

const world = eachInItsWorld();
const isRoot = process.getuid?.() === 0;

/** Root may write everywhere, unless it gives that up. */
const withoutRights = isRoot ? ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"] : [];

async function refusal(ledger: string, by: string[] = []): Promise<string> {
  const { stdout, stderr } = await child("refused", { SEMEL_LEDGER: ledger, WORLD: world().file }, [...by, process.execPath]);
  assert.notEqual(stdout, "", stderr);
  assert.deepEqual(world().acts(), []);
  return stdout;
}

async function areNamed(addresses: string[]): Promise<void> {
  for (const said of await Promise.all(addresses.map((address) => refusal(address)))) {
    assert.match(said, /^LedgerUnavailable ledger_unavailable .*Nothing was run/);
  }
}

function works(t: TestContext, by: string[]): boolean {
  const done = by.length === 0 || spawnSync(by[0]!, [...by.slice(1), "true"]).status === 0;
  if (!done) t.skip(`${by[0]} does not work here`);
  return done;
}

test("a wrong address in the environment is named", async () => {
  await areNamed(["mysql://db/x", "postgres:/db", "here.db", "redis://", "", "user@host"]);
  assert.match(await refusal("http://semel.example.com"), /^TypeError .*no server/);
});

test("a server that is not there is named", async () => {
  await areNamed(["postgres://semel@127.0.0.1:1/x?sslmode=disable", "redis://127.0.0.1:1", "etcd://127.0.0.1:1", "http://127.0.0.1:1"]);
});

test("a file that is no ledger is named, and stays as it is", async () => {
  const file = join(world().directory, "text");
  writeFileSync(file, "no ledger");
  assert.match(await refusal(file), /^LedgerUnavailable ledger_unavailable/);
  assert.equal(readFileSync(file, "utf8"), "no ledger");
});

test("a ledger of another user is named", { skip: !isRoot && "only root can give a file to another user" }, async () => {
  const theirs = join(world().directory, "theirs");
  mkdirSync(theirs, { mode: 0o700 });
  const ledger = join(theirs, "ledger.db");
  await child("killed", { SEMEL_LEDGER: ledger, WORLD: join(world().directory, "elsewhere"), INVOICES: "1001" });
  for (const name of ["", ...readdirSync(theirs)]) chownSync(join(theirs, name), 65534, 65534);
  assert.match(await refusal(ledger), /^LedgerUnavailable ledger_unavailable .*user/);
});

test("a directory that is read-only is named", async (t) => {
  if (!works(t, withoutRights)) return;
  const closed = join(world().directory, "closed");
  mkdirSync(closed);
  chmodSync(closed, 0o500);
  assert.match(await refusal(join(closed, "ledger.db"), withoutRights), /^LedgerUnavailable ledger_unavailable/);
  assert.deepEqual(readdirSync(closed), []);
});

test("a disk that is full is named before anything runs, and hides no effect", async (t) => {
  const disk = join(world().directory, "disk");
  mkdirSync(disk, { mode: 0o700 });
  // Only this command sees the filesystem, and it ends with it.
  const mount = 'mount -t tmpfs -o size=1m,mode=0700 none "$0" && exec "$@"';
  const by = ["unshare", "--mount", ...(isRoot ? [] : ["--map-root-user"]), "sh", "-c", mount, disk];
  if (!works(t, by)) return;
  const env = { SEMEL_LEDGER: join(disk, "ledger.db"), WORLD: world().file };
  const { code, stderr } = await child("full", env, [...by, process.execPath]);
  assert.equal(code, 0, stderr);
  assert.deepEqual(world().acts(), ["bob", "ann", "eve"]);
});
