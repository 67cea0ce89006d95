import assert from "node:assert/strict";
import { test } from "node:test";
import { chargeOf } from "../examples/once.js";
import { current, Drift, effect, InDoubt, once, Refused, resolve, run, UnstorableReply } from "../src/index.js";
import { eachInItsWorld, ending } from "./world.js";

const world = eachInItsWorld();

/** Acts, and then loses its answer. */
function lose(what: string): never {
  world().act(what);
  throw new Error("socket hang up");
}

test("a repeat gets the recorded value", async () => {
  const charge = once(async function charge(customer: string, amount: number) {
    world().act(`${customer} ${amount}`);
    return { id: "ch_1", amount };
  });
  const first: { id: string; amount: number } = await charge("ann", 4900);
  assert.deepEqual(await charge("ann", 4900), first);
  assert.deepEqual(world().acts(), ["ann 4900"]);
  await charge("bob", 4900);
  assert.deepEqual(world().acts(), ["ann 4900", "bob 4900"]);
});

test("the example charges an invoice once", async () => {
  const charge = chargeOf(async (customer) => {
    world().act(customer);
    return { id: "ch_1", declined: customer === "bob" };
  });
  assert.deepEqual(await charge("1001", "ann"), { id: "ch_1", declined: false });
  assert.deepEqual(await charge("1001", "ann"), { id: "ch_1", declined: false });
  assert((await ending(charge("1002", "bob"))).error instanceof Refused);
  assert.deepEqual(world().acts(), ["ann", "bob"]);
});

test("a function that is not async is guarded too, and keeps its `this`", async () => {
  const shop = {
    name: "shop",
    sell: once(function sell(this: { name: string }, what: string) {
      world().act(what);
      return `${this.name} sold ${what}`;
    }),
  };
  assert.equal(await shop.sell("tea"), "shop sold tea");
  assert.equal(await shop.sell("tea"), "shop sold tea");
  assert.equal(world().acts().length, 1);
});

test("twelve equal calls at once run once and get twelve answers", async () => {
  const send = once(async function send({ to }: { to: string }) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    world().act(to);
    return { sent: to };
  });
  const answers = await Promise.all(Array.from({ length: 12 }, () => send({ to: "ann" })));
  assert.deepEqual(answers, Array(12).fill({ sent: "ann" }));
  assert.equal(world().acts().length, 1);
});

test("a lost answer is a doubt, and the repeat does not run", async () => {
  const charge = once(function charge(customer: string) {
    return lose(customer);
  });
  const { error } = await ending(charge("ann"));
  assert(error instanceof InDoubt);
  assert.equal((error.cause as Error).message, "socket hang up");
  assert.equal(error.code, "in_doubt");
  assert.equal(error.retry, "no");
  assert.match(error.effect_id!, /^ef_/);
  assert.match(error.message, /may have been carried out.* Safe to retry: no\. Do not call it again/);
  assert.doesNotMatch(error.message, /try again/i);
  const again = await ending(charge("ann"));
  assert(again.error instanceof InDoubt);
  assert.equal(again.error.effect_id, error.effect_id);
  assert.deepEqual(world().acts(), ["ann"]);
});

test("a person's ruling ends the doubt", async () => {
  const charge = once(function charge(customer: string): { id: string } {
    return lose(customer);
  });
  const { error } = await ending(charge("ann"));
  await resolve(error.effect_id, "applied", "seen in the dashboard", { id: "ch_1" });
  assert.deepEqual(await charge("ann"), { id: "ch_1" });
  assert.equal(world().acts().length, 1);
});

test("a refusal goes through as it is, and the next call runs", async () => {
  class CardError extends Error {}
  let answers: Error[] = [new Refused("no such customer"), new CardError("declined"), new Error("402")];
  const charge = once(
    function charge(customer: string) {
      const refusal = answers.shift();
      if (refusal) throw refusal;
      world().act(customer);
      return "ch_1";
    },
    { refused: (error) => error instanceof CardError || (error as Error).message === "402" },
  );
  for (const refusal of [...answers]) assert.equal((await ending(charge("ann"))).error, refusal);
  assert.equal(await charge("ann"), "ch_1");
  assert.equal(world().acts().length, 1);
});

test("classes of errors can be named as refusals", async () => {
  class CardError extends Error {}
  const charge = once(
    function charge() {
      throw new CardError("declined");
    },
    { refused: [CardError] },
  );
  assert((await ending(charge())).error instanceof CardError);
  assert((await ending(charge())).error instanceof CardError);
});

test("a reason repeats it on purpose, once for each reason", async () => {
  const send = once(function send(to: string) {
    world().act(to);
    return world().acts().length;
  });
  assert.equal(await send("ann"), 1);
  assert.equal(await send.again("customer asked")("ann"), 2);
  assert.equal(await send.again("customer asked")("ann"), 2);
  assert.equal(await send.again("customer asked once more")("ann"), 3);
});

test("a key names the effect, and other arguments under it are refused", async () => {
  const charge = once(
    function charge(invoice: string, amount: number) {
      world().act(`${invoice} ${amount}`);
      return amount;
    },
    { key: (invoice) => `invoice ${invoice} – 100 %` },
  );
  assert.equal(await charge("1001", 4900), 4900);
  assert.equal(await charge("1001", 4900), 4900);
  const { error } = await ending(charge("1001", 9900));
  assert(error instanceof Drift);
  assert.deepEqual(world().acts(), ["1001 4900"]);
});

test("two functions may use the same key", async () => {
  const options = { key: (id: string) => id };
  const book = once(function book(id: string) {
    world().act(`book ${id}`);
  }, options);
  const bill = once(function bill(id: string) {
    world().act(`bill ${id}`);
  }, options);
  await book("7");
  await bill("7");
  assert.deepEqual(world().acts(), ["book 7", "bill 7"]);
});

test("only the arguments of `by` make two calls the same", async () => {
  const send = once(
    function send(mail: { to: string; subject: string; body: string; cc?: string }) {
      world().act(mail.body);
      return mail.body;
    },
    { by: ({ to, subject, cc }) => ({ to, subject, cc }) },
  );
  await run("order-42", async () => {
    assert.equal(await send({ to: "ann", subject: "Hello", body: "Dear Ann" }), "Dear Ann");
    assert.equal(await send({ to: "ann", subject: "Hello", body: "Hi Ann!" }), "Dear Ann");
    assert.equal(await send({ to: "bob", subject: "Hello", body: "Hi Bob!" }), "Hi Bob!");
  });
  assert.deepEqual(world().acts(), ["Dear Ann", "Hi Bob!"]);
});

test("the tool that honours the key is called again with the same key", async () => {
  const keys: (string | undefined)[] = [];
  const charge = once(
    function charge(customer: string) {
      const { idempotencyKey, attempt } = current();
      if (!keys.includes(idempotencyKey)) world().act(customer);
      keys.push(idempotencyKey);
      if (attempt === 1) throw new Error("timeout");
      return "ch_1";
    },
    { keyedFor: "24h" },
  );
  assert((await ending(charge("ann"))).error instanceof InDoubt);
  assert.equal(await charge("ann"), "ch_1");
  assert.equal(keys.length, 2);
  assert.equal(keys[0], keys[1]);
  assert.equal(world().acts().length, 1);
});

test("current() tells the effect inside, and nothing outside", async () => {
  const charge = once(async function charge(_customer: string) {
    await null;
    const { id, idempotencyKey, run: of, action } = current();
    return { id, idempotencyKey, of, action };
  });
  const told = await run("order-1", () => charge("ann"));
  assert.match(told.id!, /^ef_/);
  assert.match(told.idempotencyKey!, /./);
  assert.equal(told.of, "order-1");
  assert.equal(told.action, "fn:charge");
  assert.throws(() => current(), /inside of a function/);
});

test("each run has its own calls", async () => {
  const send = once(function send(to: string) {
    world().act(`${to} ${current().run}`);
  });
  const twice = () => Promise.all([send("ann"), send("ann")]);
  await Promise.all([run("a", twice), run("b", twice)]);
  assert.deepEqual(world().acts().sort(), ["ann a", "ann b"]);
});

test("a block is an effect too", async () => {
  const block = () =>
    effect("welcome", { user: 42 }, async (e) => {
      world().act(e.id!);
      return { key: e.idempotencyKey };
    });
  assert.deepEqual(await block(), await block());
  assert.equal(world().acts().length, 1);
  const other = await ending(effect("welcome", { user: 42 }, () => world().act("again"), { again: "asked for" }));
  assert.equal(other.error, undefined);
  assert.equal(world().acts().length, 2);
});

test("a call inside of itself is not waited for, and leaves the outer call in doubt", async () => {
  const charge = once(async function charge(customer: string, inside?: () => Promise<unknown>): Promise<string> {
    world().act(customer);
    if (inside) await inside();
    return "ch_1";
  }, { key: (customer) => customer });
  assert.equal(await charge("ann", () => charge("bob")), "ch_1");
  for (let times = 0; times < 2; times++) {
    const { error } = await ending(charge("eve", () => charge("eve")));
    assert(error instanceof InDoubt);
    if (times === 0) assert.match(String(error.cause), /inside of itself/);
  }
  assert.deepEqual(world().acts(), ["ann", "bob", "eve"]);
});

test("the refusal of an inner call says nothing about the outer one", async () => {
  const inner = once(async function inner() {
    throw new Refused("declined");
  });
  const outer = once(async function outer(customer: string) {
    world().act(customer);
    await inner();
  }, { refused: [Error] });
  for (let times = 0; times < 2; times++) assert((await ending(outer("ann"))).error instanceof InDoubt);
  assert.deepEqual(world().acts(), ["ann"]);
});

test("with `by`, a no about other arguments does not count", async () => {
  const charge = once(function charge(_invoice: string, amount: number) {
    return lose(String(amount));
  }, { by: (invoice: string) => ({ invoice }) }).probe(() => undefined, { quiet: 0 });
  for (const amount of [100, 200]) assert((await ending(charge("1", amount))).error instanceof InDoubt);
  assert.deepEqual(world().acts(), ["100"]);
});

test("a probe that finds it gives the reply", async () => {
  const charge = once(function charge(customer: string): { id: string } {
    return lose(customer);
  }).probe((customer) => (world().acts().includes(customer) ? { id: "found" } : undefined));
  assert.deepEqual(await charge("ann"), { id: "found" });
  assert.deepEqual(await charge("ann"), { id: "found" });
  assert.equal(world().acts().length, 1);
});

test("a probe that fails leaves the doubt", async () => {
  const charge = once(function charge(customer: string) {
    return lose(customer);
  }).probe(() => {
    throw new Error("the list cannot be reached");
  });
  assert((await ending(charge("ann"))).error instanceof InDoubt);
  assert((await ending(charge("ann"))).error instanceof InDoubt);
  assert.equal(world().acts().length, 1);
});

test("a probe that finds nothing too early says wait", async () => {
  const charge = once(function charge(customer: string) {
    return lose(customer);
  }).probe(() => undefined, { quiet: "1h" });
  const { error } = await ending(charge("ann"));
  assert(error instanceof InDoubt);
  assert.equal(error.retry, "wait");
  assert.match(error.message, /Safe to retry: wait/);
  assert.equal(world().acts().length, 1);
});

test("a probe that finds nothing late enough lets it run", async () => {
  let lost = true;
  const charge = once(function charge(customer: string) {
    if (!lost) {
      world().act(customer);
      return "ch_1";
    }
    lost = false;
    throw new Error("lost on the way there");
  }).probe(() => null, { quiet: 0 });
  // Its answer counts some seconds after the doubt; until then the call says wait.
  let last = await ending(charge("ann"));
  while (last.error instanceof InDoubt && last.error.retry === "wait") {
    await new Promise((resolve) => setTimeout(resolve, 100));
    last = await ending(charge("ann"));
  }
  assert.deepEqual(last, { value: "ch_1" });
  assert.equal(world().acts().length, 1);
});

test("an abort goes on as it is, and its effect is in doubt", async () => {
  const controller = new AbortController();
  const fetchIt = once(async function fetchIt(to: string) {
    world().act(to);
    controller.abort();
    controller.signal.throwIfAborted();
  });
  assert.equal((await ending(fetchIt("ann"))).error, controller.signal.reason);
  assert((await ending(fetchIt("ann"))).error instanceof InDoubt);
  assert.equal(world().acts().length, 1);
});

test("a reply that is no JSON is recorded as done, and handed over with the error", async () => {
  const count = once(function count(what: string) {
    world().act(what);
    return 12n;
  });
  const { error } = await ending(count("stars"));
  assert(error instanceof UnstorableReply);
  assert.equal(error.value, 12n);
  assert.equal(await count("stars"), null);
  assert.equal(world().acts().length, 1);
});

test("a reply that is too large is returned, and not kept", async () => {
  for (const mib of [2, 5]) {
    const read = once(
      function read(): string {
        world().act("read");
        return "x".repeat(mib * 1024 * 1024);
      },
      { name: `read${mib}` },
    );
    assert.equal((await read()).length, mib * 1024 * 1024);
    assert.equal(await read(), null);
  }
  assert.equal(world().acts().length, 2);
});

test("a function without a value can be repeated", async () => {
  const send = once(async function send() {
    world().act("sent");
  });
  await send();
  await send();
  assert.equal(world().acts().length, 1);
});

test("text of every kind arrives as it was", async () => {
  const odd = "Zoë\n\u2028 \"quoted\" 🎈 \\";
  const echo = once(function 写(what: { text: string }) {
    world().act("said");
    return what;
  });
  assert.deepEqual(await echo({ text: odd }), { text: odd });
  assert.deepEqual(await echo({ text: odd }), { text: odd });
  assert.equal(world().acts().length, 1);
});

test("bad input is refused before anything is sent", async () => {
  const act = (..._args: unknown[]) => world().act("ran");
  const circle: { self?: object } = {};
  circle.self = circle;
  assert.throws(() => once(() => 1), /needs a name/);
  assert.throws(() => once(function* stream() {}), /generator/);
  assert.throws(() => once(async function* stream() {}), /generator/);
  assert.throws(() => once(act, { keyedFor: "a day" }), /24h/);
  assert.throws(() => once(act).probe(() => null, { quiet: -1 }), /24h/);
  assert.throws(() => once(act).again(" "), /reason/);
  for (const argument of [new Map(), new Set(), 1n, NaN, () => 1, Symbol("s"), circle, new (class Order {})(), [Infinity]]) {
    await assert.rejects(once(act)(argument), /is no JSON/);
    await assert.rejects(once(act)({ inside: { it: argument } }), /inside\.it.*is no JSON/);
  }
  await assert.rejects(once(act, { key: () => "" })(1), /not empty/);
  await assert.rejects(once(act, { key: () => undefined as unknown as string })(1), /not empty/);
  await assert.rejects(once(act, { by: () => ({}) })(1), /no argument/);
  await assert.rejects(effect("e", { to: 1 }, act, { by: ["too"] }), /too/);
  await assert.rejects(run("", act), /empty/);
  assert.deepEqual(world().acts(), []);
});

test("arguments that are no JSON may stay out where a key or `by` names the call", async () => {
  const keyed = once(
    function keyed(id: string, _db: Map<string, string>) {
      world().act(id);
    },
    { key: (id) => id },
  );
  await keyed("1", new Map());
  await keyed("1", new Map([["other", "connection"]]));
  const chosen = once(
    function chosen(id: string, _db: Map<string, string>) {
      world().act(id);
    },
    { by: (id) => ({ id }) },
  );
  await run("r", async () => {
    await chosen("2", new Map());
    await chosen("2", new Map());
  });
  assert.deepEqual(world().acts(), ["1", "2"]);
});
