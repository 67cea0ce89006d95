-- The tables of a ledger. Everything lies in one schema, which the connection's search_path names.
--
-- An id holds the number of the transaction that made it in its upper bits. Transactions below the oldest running one
-- have all ended, so a reader that stops there misses nothing that commits later (see the journal's query).
CREATE TABLE meta (
  one           integer PRIMARY KEY CHECK (one = 1),
  format        integer NOT NULL,
  secret        bytea   NOT NULL,
  system        bigint  NOT NULL,
  timeline      text    NOT NULL,
  -- Added to every id: a restored ledger goes on above its old ids, although its transactions count anew.
  id_base       bigint  NOT NULL
);

CREATE TABLE effect (
  id         bigint  PRIMARY KEY,
  key        bytea   NOT NULL,
  ordinal    integer NOT NULL,
  revision   bigint  NOT NULL,
  nonce      bytea   NOT NULL,
  effect     bytea   NOT NULL UNIQUE,
  run        bytea,
  family     bytea   NOT NULL,
  alike      bytea,
  open       boolean NOT NULL,
  owner      bytea,
  opened_at  bigint  NOT NULL,
  changed_at bigint  NOT NULL,
  -- An effect in three parts, by how often they change.
  fixed      bytea   NOT NULL,
  state      bytea   NOT NULL,
  delivery   bytea   NOT NULL,
  reply      bytea,
  UNIQUE (key, ordinal)
);
CREATE INDEX effect_open ON effect (id) WHERE open;
CREATE INDEX effect_open_family ON effect (family) WHERE open;
CREATE INDEX effect_run ON effect (run, id) WHERE run IS NOT NULL;
CREATE INDEX effect_alike ON effect (alike, id) WHERE alike IS NOT NULL;

CREATE TABLE cell (
  key      bytea  PRIMARY KEY,
  revision bigint NOT NULL,
  nonce    bytea  NOT NULL,
  body     bytea  NOT NULL
);

-- Processes that hold attempts, and when each was last heard of.
CREATE TABLE holder (
  owner bytea       PRIMARY KEY,
  beat  timestamptz NOT NULL
);

CREATE TABLE journal (
  id     bigint PRIMARY KEY,
  at     bigint NOT NULL,
  effect bytea,
  run    bytea,
  kind   text   NOT NULL,
  data   text   NOT NULL
);
