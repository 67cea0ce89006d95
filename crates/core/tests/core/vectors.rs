//! The golden vectors of `spec/vectors`, which the SDKs share. They were derived by other code than this.

use semel_core::digest::{Digest, Secret};
use semel_core::identity::{
    IntentDigest, IntentParts, Marks, Sorting, family_key, intent_key, outline_key, sort,
};
use semel_core::json::{Json, JsonProblem, Path, parse};
use semel_core::normalise::Normaliser;
use serde::Deserialize;
use serde::de::DeserializeOwned;

#[derive(Deserialize)]
struct Vectors<Case> {
    cases: Vec<Case>,
}

fn cases<Case: DeserializeOwned>(file: &str) -> Vec<Case> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/vectors").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let vectors: Vectors<Case> =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(!vectors.cases.is_empty());
    vectors.cases
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct WrittenSorting {
    key: Vec<Path>,
    content: Vec<Path>,
    volatile: Vec<Path>,
    normalize: Vec<(Path, Vec<Normaliser>)>,
}

impl From<WrittenSorting> for Sorting {
    fn from(written: WrittenSorting) -> Sorting {
        let WrittenSorting { key, content, volatile, normalize } = written;
        Sorting { key, content, volatile, normalize, ..Sorting::default() }
    }
}

fn word(problem: &JsonProblem) -> &'static str {
    match problem {
        JsonProblem::TextTooLong => "TextTooLong",
        JsonProblem::NotUtf8 => "NotUtf8",
        JsonProblem::Ended { .. } => "Ended",
        JsonProblem::Unexpected { .. } => "Unexpected",
        JsonProblem::TrailingText => "TrailingText",
        JsonProblem::TooDeep => "TooDeep",
        JsonProblem::TooManyValues => "TooManyValues",
        JsonProblem::DuplicateMember(_) => "DuplicateMember",
        JsonProblem::ControlCharacter => "ControlCharacter",
        JsonProblem::BadEscape => "BadEscape",
        JsonProblem::LoneSurrogate => "LoneSurrogate",
        JsonProblem::BadNumber => "BadNumber",
        JsonProblem::NumberTooLong => "NumberTooLong",
    }
}

fn secret(hex: &str) -> Secret {
    Secret::new(Digest::parse(hex).expect("a secret has 64 hexadecimal digits").0)
}

#[test]
fn canonical_texts_and_refusals_are_as_specified() {
    #[derive(Deserialize)]
    struct Case {
        name: String,
        input: String,
        canonical: Option<String>,
        error: Option<String>,
    }
    for Case { name, input, canonical, error } in cases("canonical.json") {
        match parse(&input) {
            Ok(json) => assert_eq!(Some(json.canonical()), canonical, "{name}"),
            Err(refusal) => assert_eq!(Some(word(&refusal.what)), error.as_deref(), "{name}"),
        }
    }
}

#[test]
fn intent_digests_are_as_specified() {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Case {
        CallerKey { name: String, caller_key: String, digest: Digest, idempotency_key: String },
        Derived(Box<Derived>),
    }
    #[derive(Deserialize)]
    struct Derived {
        name: String,
        action: String,
        arguments: String,
        sorting: WrittenSorting,
        identity: String,
        missing: Vec<Path>,
        digest: Digest,
        idempotency_key: String,
    }
    for case in cases("intent-digest.json") {
        let (name, derived, digest, idempotency_key) = match case {
            Case::CallerKey { name, caller_key, digest, idempotency_key } => {
                (name, IntentDigest::of_caller_key(&caller_key), digest, idempotency_key)
            }
            Case::Derived(case) => {
                let arguments = parse(&case.arguments).expect(&case.name);
                let sorted = sort(&arguments, &case.sorting.into());
                assert_eq!(sorted.identity.canonical(), case.identity, "{}", case.name);
                assert_eq!(sorted.missing_key_paths, case.missing, "{}", case.name);
                let derived = IntentDigest::of(&case.action, &sorted.identity);
                (case.name, derived, case.digest, case.idempotency_key)
            }
        };
        assert_eq!(derived.0, digest, "{name}");
        assert_eq!(derived.idempotency_key(), idempotency_key, "{name}");
    }
}

#[test]
fn keys_of_a_ledger_are_as_specified() {
    #[derive(Deserialize)]
    struct Case {
        name: String,
        secret: String,
        tenant: String,
        principal: String,
        authority: String,
        scope: String,
        digest: Digest,
        action: String,
        intent_key: Digest,
        family_key: Digest,
        outline: String,
        outline_key: Digest,
    }
    for case in cases::<Case>("intent-key.json") {
        let parts = IntentParts {
            tenant: &case.tenant,
            principal: &case.principal,
            authority: &case.authority,
            scope: &case.scope,
        };
        let (secret, digest) = (secret(&case.secret), IntentDigest(case.digest));
        assert_eq!(intent_key(&secret, &parts, &digest), case.intent_key, "{}", case.name);
        assert_eq!(family_key(&secret, &parts, &digest), case.family_key, "{}", case.name);
        let key = outline_key(&secret, &parts, &case.action, &case.outline);
        assert_eq!(key, case.outline_key, "{}", case.name);
    }
}

#[test]
fn fingerprints_are_as_specified() {
    #[derive(Deserialize)]
    struct Case {
        name: String,
        secret: String,
        action: String,
        arguments: String,
        sorting: WrittenSorting,
        fingerprint: Digest,
        content: Option<Digest>,
    }
    for case in cases::<Case>("fingerprint.json") {
        let arguments = parse(&case.arguments).expect(&case.name);
        let sorted = sort(&arguments, &case.sorting.into());
        let marks = Marks::of(&secret(&case.secret), &case.action, &sorted);
        assert_eq!(marks.fingerprint, case.fingerprint, "{}", case.name);
        assert_eq!(marks.content, case.content, "{}", case.name);
    }
}

#[test]
fn pairs_are_the_same_intent_or_not_as_specified() {
    #[derive(Deserialize)]
    #[serde(tag = "expect", rename_all = "snake_case")]
    enum Case {
        Same(Box<Pair>),
        Different(Box<Pair>),
        Refused { name: String, one: String, error: String },
    }
    #[derive(Deserialize)]
    struct Pair {
        name: String,
        action: String,
        other_action: String,
        sorting: WrittenSorting,
        one: String,
        other: String,
        same_fingerprint: bool,
        same_content: bool,
    }
    for case in cases("same-intent.json") {
        let (pair, same) = match case {
            Case::Same(pair) => (*pair, true),
            Case::Different(pair) => (*pair, false),
            Case::Refused { name, one, error } => {
                assert_eq!(word(&parse(&one).expect_err(&name).what), error, "{name}");
                continue;
            }
        };
        let sorting = pair.sorting.into();
        let secret = secret(&"5e".repeat(32));
        let derive = |action: &str, arguments: &str| {
            let arguments = parse(arguments).expect(&pair.name);
            let sorted = sort(&arguments, &sorting);
            (IntentDigest::of(action, &sorted.identity), Marks::of(&secret, action, &sorted))
        };
        let (digest, marks) = derive(&pair.action, &pair.one);
        let (other_digest, other_marks) = derive(&pair.other_action, &pair.other);
        assert_eq!(digest == other_digest, same, "{}", pair.name);
        assert_eq!(marks.fingerprint == other_marks.fingerprint, pair.same_fingerprint, "{}", pair.name);
        assert_eq!(marks.content == other_marks.content, pair.same_content, "{}", pair.name);
        if pair.action == pair.other_action {
            assert_eq!(marks.differing(&other_marks).is_empty(), pair.same_fingerprint, "{}", pair.name);
            assert_eq!(marks.differing_content(&other_marks).is_empty(), pair.same_content, "{}", pair.name);
        }
    }
}

#[test]
fn arguments_may_come_from_serde_json_too() {
    let value = serde_json::json!({"args": {"b": 1.0, "a": [null, "x", 1e21, -0.0]}});
    assert_eq!(Json::from(value).canonical(), r#"{"args":{"a":[null,"x",1e+21,0],"b":1}}"#);
}
