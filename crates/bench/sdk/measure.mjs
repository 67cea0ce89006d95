// The same in Node, beside node:sqlite.
//
// usage: measure.mjs CALLS, in a directory of its own

import { closeSync, fdatasyncSync, openSync, statSync, writeSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { close, configure, once } from "semel";

const BLOCK = 50;
const REPLY = { id: "r".repeat(190) };

const calls = Number(process.argv[2]);
configure({ ledger: "ledger.db" });
const charge = once(async (invoice) => REPLY, { name: "charge", key: (invoice) => invoice });

const names = [];
while (names.length < calls || statSync("ledger.db").size < 256 * 1024) {
  const some = Array.from({ length: 64 }, (_, n) => `known-${names.length + n}`);
  await Promise.all(some.map((name) => charge(name)));
  names.push(...some);
}

const table = new DatabaseSync("bare.db");
table.exec("PRAGMA journal_mode=WAL; CREATE TABLE effect(key TEXT PRIMARY KEY, reply TEXT) WITHOUT ROWID; BEGIN");
const insert = table.prepare("INSERT INTO effect VALUES(?, ?)");
for (const name of names) insert.run(name, JSON.stringify(REPLY));
table.exec("COMMIT");
const select = table.prepare("SELECT reply FROM effect WHERE key = ?");
const appended = openSync("appended", "a");
const page = Buffer.alloc(4096, 7);

const times = { replay: [], read: [], fresh: [], flushes: [] };
const known = () => names[Math.floor(Math.random() * names.length)];
for (let block = 0; block < calls / BLOCK; block += 1) {
  for (let n = 0; n < 4 * BLOCK; n += 1) {
    const name = known();
    const started = performance.now();
    const row = select.get(name);
    times.read.push(performance.now() - started);
    if (row.reply.length < 190) throw new Error("the row has no reply");
  }
  for (let n = 0; n < 4 * BLOCK; n += 1) {
    const name = known();
    const started = performance.now();
    await charge(name);
    times.replay.push(performance.now() - started);
  }
  for (let n = 0; n < BLOCK; n += 1) {
    const started = performance.now();
    await charge(`fresh-${block}-${n}`);
    times.fresh.push(performance.now() - started);
  }
  for (let n = 0; n < BLOCK; n += 1) {
    const started = performance.now();
    for (let flush = 0; flush < 2; flush += 1) {
      writeSync(appended, page);
      fdatasyncSync(appended);
    }
    times.flushes.push(performance.now() - started);
  }
}
closeSync(appended);
const [{ version }] = table.prepare("SELECT sqlite_version() AS version").all();
table.close();
await close();

const median = (all) => 1000 * all.sort((a, b) => a - b)[all.length >> 1];
const medians = Object.fromEntries(Object.entries(times).map(([name, all]) => [name, median(all)]));
const versions = `Node ${process.versions.node}, SQLite ${version}`;
console.log(JSON.stringify({ ...medians, effects: names.length, versions }));
