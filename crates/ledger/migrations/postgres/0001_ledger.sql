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
  content    bigint  NOT NULL,
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
-- Of a busy outline few are open. The planner knows outlines on average alone, and would go through all of this one.
CREATE INDEX effect_open_alike ON effect (alike, id) WHERE open AND alike IS NOT NULL;

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

-- What every claim and settlement asks. As functions, because the server keeps the plan of a function's statement for
-- as long as a connection lives, behind a pooler too, where a prepared statement would be mixed up with another's. A kept
-- plan was made while the ledger may have been empty: so it always goes by the indexes.
--
-- Nothing is decided here: what was read is examined by the caller, and what is written was examined before.

-- A row without its bytes.
CREATE VIEW head AS
  SELECT id, key, ordinal, revision, nonce, effect, run, family, alike, content, open, owner, opened_at, changed_at FROM effect;

-- Which history of a database this is: clusters that were not copied from each other byte by byte differ in the system,
-- every promotion and every recovery to a point in time begins a new timeline, and tables that a dump made have other
-- numbers than those that it was taken of.
CREATE FUNCTION history(OUT system bigint, OUT timeline text) LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  SELECT c.system_identifier INTO system FROM pg_control_system() c;
  timeline := left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) || ' ' || 'meta'::regclass::oid;
END $$;

-- All that the rules rely on, because a role or database may have other defaults: a commit is on the disk, and a host that
-- has died does not hold its locks for long. The statements that follow see what the locks have waited for.
CREATE FUNCTION begin_batch(numbers bigint[], alone bool[], synchronous text, hold_within text)
  RETURNS TABLE (first_id bigint, is_same_history bool, format int, secret bytea) LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  PERFORM set_config('synchronous_commit', synchronous, true),
    set_config('idle_in_transaction_session_timeout', hold_within, true);
  PERFORM CASE WHEN l.alone THEN pg_advisory_xact_lock(l.number)::text ELSE pg_advisory_xact_lock_shared(l.number)::text END
    FROM unnest(numbers, alone) l(number, alone);
  RETURN QUERY SELECT m.id_base + (pg_current_xact_id()::text::bigint << 16),
    (m.system, m.timeline) = (h.system, h.timeline), m.format, m.secret FROM meta m, history() h
      WHERE m.one = 1;
END $$;

-- The newest row of a record, with nothing in it if there is none, the revision of a cell, and how far the ledger has come.
CREATE FUNCTION newest(wanted bytea, beside bytea)
  RETURNS TABLE (id bigint, key bytea, ordinal int, revision bigint, nonce bytea, effect bytea, run bytea, family bytea,
    alike bytea, content bigint, open bool, owner bytea, opened_at bigint, changed_at bigint, fixed bytea, state bytea,
    delivery bytea, reply bytea, beside_revision bigint, last_line bigint) LANGUAGE plpgsql STABLE
  SET search_path FROM CURRENT SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY SELECT e.*, (SELECT c.revision FROM cell c WHERE c.key = beside), (SELECT max(j.id) FROM journal j)
    FROM (SELECT 1) one
    LEFT JOIN LATERAL (SELECT f.* FROM effect f WHERE f.key = wanted ORDER BY f.ordinal DESC LIMIT 1) e ON true;
END $$;

-- The cards of the newest rows of an outline, and of others that are open. Of an array, because two subqueries with OR
-- between them are looked up in every row of the table.
CREATE FUNCTION cards(wanted bytea, most bigint, most_open bigint)
  RETURNS TABLE (id bigint, key bytea, ordinal int, content bigint, open bool, delivered bool, revision bigint)
  LANGUAGE plpgsql STABLE
  SET search_path FROM CURRENT SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY SELECT e.id, e.key, e.ordinal, e.content, e.open, e.delivery <> '', e.revision FROM effect e
    WHERE e.id = ANY (ARRAY(SELECT a.id FROM effect a WHERE a.alike = wanted ORDER BY a.id DESC LIMIT most)
      || ARRAY(SELECT a.id FROM effect a WHERE a.alike = wanted AND a.open ORDER BY a.id DESC LIMIT most_open))
    ORDER BY e.id DESC;
END $$;

CREATE FUNCTION heads(keys bytea[]) RETURNS SETOF head LANGUAGE plpgsql STABLE
  SET search_path FROM CURRENT SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY SELECT e.* FROM unnest(keys) wanted CROSS JOIN LATERAL
    (SELECT h.* FROM head h WHERE h.key = wanted ORDER BY h.ordinal DESC LIMIT 1) e;
END $$;

CREATE FUNCTION rows_at(keys bytea[], ordinals int[]) RETURNS SETOF head LANGUAGE plpgsql STABLE
  SET search_path FROM CURRENT SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY SELECT h.* FROM unnest(keys, ordinals) wanted(key, ordinal)
    JOIN head h ON h.key = wanted.key AND h.ordinal = wanted.ordinal;
END $$;

CREATE FUNCTION cells(keys bytea[]) RETURNS TABLE (key bytea, revision bigint, nonce bytea) LANGUAGE plpgsql STABLE
  SET search_path FROM CURRENT SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY SELECT c.key, c.revision, c.nonce FROM cell c WHERE c.key = ANY (keys);
END $$;

-- For each family, an open record of it that is not the caller's own.
CREATE FUNCTION open_relatives(families bytea[], own bytea[]) RETURNS TABLE (family bytea, key bytea) LANGUAGE plpgsql STABLE
  SET search_path FROM CURRENT SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY SELECT wanted.family, r.key FROM unnest(families, own) wanted(family, own) CROSS JOIN LATERAL
    (SELECT e.key FROM effect e WHERE e.open AND e.family = wanted.family AND e.key IS DISTINCT FROM wanted.own LIMIT 1) r;
END $$;

-- What tells whether the effects of an outline are still those that a caller has seen.
CREATE FUNCTION seen_alike(outlines bytea[], most bigint, most_open bigint)
  RETURNS TABLE (outline bytea, newest bigint, changes bigint, open_ids text) LANGUAGE plpgsql STABLE
  SET search_path FROM CURRENT SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY SELECT wanted, n.id, n.changes, o.ids FROM unnest(outlines) wanted
    CROSS JOIN LATERAL (SELECT max(e.id) AS id, coalesce(sum(e.changes), 0)::bigint AS changes FROM
      (SELECT a.id, a.revision - (a.delivery <> '')::int AS changes FROM effect a WHERE a.alike = wanted ORDER BY a.id DESC LIMIT most) e) n
    CROSS JOIN LATERAL (SELECT coalesce(sum(e.id), 0)::text AS ids FROM
      (SELECT a.id FROM effect a WHERE a.alike = wanted AND a.open ORDER BY a.id DESC LIMIT most_open) e) o;
END $$;

-- A write that touches another number of rows than it was examined for ends its transaction.
CREATE FUNCTION must_be(written bigint, examined int) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF written <> examined THEN
    RAISE EXCEPTION '% rows were examined and % written', examined, written;
  END IF;
END $$;

CREATE FUNCTION add_rows(key bytea[], ordinal int[], id bigint[], revision bigint[], nonce bytea[], effect bytea[],
    run bytea[], family bytea[], alike bytea[], content bigint[], open bool[], owner bytea[], opened_at bigint[],
    changed_at bigint[], fixed bytea[], state bytea[], delivery bytea[], reply bytea[]) RETURNS void LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
  INSERT INTO effect (key, ordinal, id, revision, nonce, effect, run, family, alike, content, open, owner, opened_at,
      changed_at, fixed, state, delivery, reply)
    SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18);
END $$;

CREATE FUNCTION overwrite_rows(id bigint[], revision bigint[], nonce bytea[], effect bytea[], run bytea[], family bytea[],
    alike bytea[], content bigint[], open bool[], owner bytea[], opened_at bigint[], changed_at bigint[], fixed bytea[],
    state bytea[], delivery bytea[], reply bytea[], keeps_reply bool[]) RETURNS void LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  written bigint;
BEGIN
  UPDATE effect e SET revision = n.revision, nonce = n.nonce, effect = n.effect, run = n.run, family = n.family,
      alike = n.alike, content = n.content, open = n.open, owner = n.owner, opened_at = n.opened_at, changed_at = n.changed_at,
      fixed = n.fixed, state = n.state, delivery = n.delivery,
      reply = CASE WHEN n.keeps_reply THEN e.reply ELSE n.reply END
    FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17) n(id, revision, nonce, effect,
      run, family, alike, content, open, owner, opened_at, changed_at, fixed, state, delivery, reply, keeps_reply)
    WHERE e.id = n.id AND e.revision = n.revision - 1;
  GET DIAGNOSTICS written = ROW_COUNT;
  PERFORM must_be(written, cardinality($1));
END $$;

CREATE FUNCTION forget_rows(ids bigint[]) RETURNS void LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  written bigint;
BEGIN
  DELETE FROM effect e WHERE e.id = ANY (ids);
  GET DIAGNOSTICS written = ROW_COUNT;
  PERFORM must_be(written, cardinality(ids));
END $$;

CREATE FUNCTION drop_replies(ids bigint[]) RETURNS void LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  written bigint;
BEGIN
  UPDATE effect e SET reply = NULL WHERE e.id = ANY (ids);
  GET DIAGNOSTICS written = ROW_COUNT;
  PERFORM must_be(written, cardinality(ids));
END $$;

CREATE FUNCTION put_cells(key bytea[], revision bigint[], nonce bytea[], body bytea[]) RETURNS void LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  written bigint;
BEGIN
  INSERT INTO cell AS old (key, revision, nonce, body) SELECT * FROM unnest($1, $2, $3, $4)
    ON CONFLICT (key) DO UPDATE SET revision = excluded.revision, nonce = excluded.nonce, body = excluded.body
    WHERE old.revision = excluded.revision - 1;
  GET DIAGNOSTICS written = ROW_COUNT;
  PERFORM must_be(written, cardinality($1));
END $$;

CREATE FUNCTION forget_cells(keys bytea[]) RETURNS void LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  written bigint;
BEGIN
  DELETE FROM cell c WHERE c.key = ANY (keys);
  GET DIAGNOSTICS written = ROW_COUNT;
  PERFORM must_be(written, cardinality(keys));
END $$;

CREATE FUNCTION add_lines(id bigint[], at bigint[], effect bytea[], run bytea[], kind text[], data text[])
  RETURNS void LANGUAGE plpgsql
  SET search_path FROM CURRENT SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
  INSERT INTO journal (id, at, effect, run, kind, data) SELECT * FROM unnest($1, $2, $3, $4, $5, $6);
END $$;
