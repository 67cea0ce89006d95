import assert from "node:assert/strict";
import { test } from "node:test";
import { Drift, Held, InDoubt, InFlight, LedgerUnavailable, Lookalike, Refused, SemelError } from "../src/index.js";
import { errorOf } from "../src/errors.js";

test("every code has its class", () => {
  const made = (code: string, status = 409) => errorOf(status, { code }, {});
  assert(made("in_doubt") instanceof InDoubt && made("in_doubt") instanceof Held && made("in_doubt") instanceof SemelError);
  assert(made("in_flight") instanceof InFlight);
  assert(made("lookalike") instanceof Lookalike);
  assert(made("superseded") instanceof Held);
  assert(made("drift") instanceof Drift && !(made("drift") instanceof Held));
  assert(made("policy_invalid") instanceof LedgerUnavailable);
  assert(errorOf(503, {}, {}) instanceof LedgerUnavailable);
  assert.equal(errorOf(401, {}, {}).constructor, SemelError);
  assert.equal(made("in_doubt").name, "InDoubt");
});

test("a second copy of the package knows the errors of the first", async () => {
  const copy = "../src/errors.js?copy";
  const other = (await import(copy)) as typeof import("../src/errors.js");
  assert.notEqual(other.InDoubt, InDoubt);
  const doubt = new other.InDoubt("may have happened");
  assert(doubt instanceof InDoubt && doubt instanceof SemelError && doubt instanceof Error);
  assert(!(doubt instanceof InFlight));
  assert(new other.Refused("no") instanceof Refused);
  assert(!(new Error("no") instanceof Refused) && !((null as unknown) instanceof Refused));
});

test("a subclass of a user is told apart", () => {
  class OutOfStock extends Refused {}
  assert(new OutOfStock() instanceof Refused && new OutOfStock() instanceof OutOfStock);
  assert(!(new Refused() instanceof OutOfStock));
});
