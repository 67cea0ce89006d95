//! The policy as a whole: files in, rules and findings out.

use super::diagnostic::{DiagnosticCode, Severity};
use super::rule::*;
use super::*;
use crate::class::Tier;
use crate::json;
use crate::judgement::recognise;
use proptest::prelude::*;

/// The example of the policy's documentation, without its packs.
const EXAMPLE: &str = r#"version = 1
mode = "guard"

[defaults]
window = "24h"
wait = "25s"

[[rule]]
match = "mcp:billing/charge_*"
class = "consequential"
effect = "created"
scope = "global"
key = ["args.customer", "args.invoice"]       # identity
content = ["args.description"]                # may be reworded
volatile = ["args.requested_at"]
normalize = { "args.customer" = ["trim", "lower"] }
serialize_by = "args.customer"
inject = { header = "Idempotency-Key", valid_for = "24h" }   # or { arg = }, { flag = "--idempotency-key" }, { env = }
key_required = false                          # true: without the key fields, refused before sending
caller_key = "joins"                          # the caller's own key adds sameness, never difference
again = "person"
failure = "in_doubt"
budget = 3
timeout = "30s"
[rule.probe]                                   # did it happen?
mcp = "billing/list_charges"
args = { customer = "{args.customer}" }
found = "resp.charges.exists(c, c.invoice == args.invoice)"
reply = "resp.charges.filter(c, c.invoice == args.invoice)[0]"
quiet = "5s"
before = false                                 # true: ask first, and skip what is already there (effect noop)
[rule.confirm]                                 # it said yes: is it true?
http = "GET https://billing.internal/charges/{reply.id}"
ok = "resp.status == 'succeeded'"
within = "2m"
[rule.undo]                                    # how to take it back, as an effect of its own
mcp = "billing/refund"
args = { charge = "{reply.id}" }

[retention]
replies = "30d"
facts = "400d"                                 # facts of explicit keys and open effects stay
"#;

fn load(text: &str) -> Result<Policy, Diagnostics> {
    Policy::load(vec![PolicyFile { path: "semel.toml".into(), text: text.to_owned() }])
}

fn loaded(text: &str) -> Policy {
    load(text).unwrap_or_else(|found| panic!("{found}"))
}

#[test]
fn two_ways_to_one_account_are_taken_however_their_headers_are_written() {
    let way = |name: &str, headers: &str| {
        format!("[upstream.{name}]\nurl = \"https://x\"\nheaders_env = {{ {headers} }}\n")
    };
    loaded(&(way("a", "A = \"K\", B = \"L\"") + &way("b", "b = \"L\", a = \"K\"")));
    let named = way("b", "A = \"M\"").replace("headers_env", "account = \"b\"\nheaders_env");
    loaded(&(way("a", "A = \"K\"") + &named));
    let found = findings(&(way("a", "A = \"K\"") + &way("b", "A = \"M\"")));
    assert!(found.contains("`b` is at the address of `a`") && found.contains("account = \"b\""), "{found}");
}

#[test]
fn hints_for_requests_speak_of_requests() {
    let found = findings("[[rule]]\nmatch = \"POST bank/charges\"\n");
    assert!(found.contains("for a request write \"http:POST bank/charges\""), "{found}");
    let found = findings("[[rule]]\nmatch = \"http:POST bank/charges\"\nkey = [\"invoice\"]\n");
    assert!(found.contains("write `body.invoice`"), "{found}");
}

/// The findings of a text, as text.
fn findings(text: &str) -> String {
    match load(text) {
        Ok(policy) => policy.warnings.to_string(),
        Err(found) => found.to_string(),
    }
}

fn codes(text: &str) -> Vec<(DiagnosticCode, usize)> {
    let found = match load(text) {
        Ok(policy) => policy.warnings,
        Err(found) => found,
    };
    found.iter().map(|finding| (finding.code, finding.line)).collect()
}

fn rule_of(policy: &Policy, action: &str, arguments: &str) -> Rule {
    let arguments = json::parse(arguments).expect(arguments);
    Arc::unwrap_or_clone(policy.rule_for(&ActionFacts::new(action, &arguments)))
}

fn command(policy: &Policy, line: &str) -> Rule {
    let argv = line.split(' ').map(Json::str).collect();
    let arguments = Json::object([("argv", Json::Array(argv))]);
    let program = line.split([' ']).next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
    Arc::unwrap_or_clone(policy.rule_for(&ActionFacts::new(&format!("cli:{program}"), &arguments)))
}

#[test]
fn calls_share_a_rule_and_none_gets_what_another_made_of_it() {
    let policy = loaded(
        "[[rule]]\nmatch = \"mcp:a/pay\"\nclass = \"consequential\"\nkey = [\"args.id\"]\n\
         inject = { arg = \"k\", valid_for = \"1h\" }\n\
         [[rule]]\nmatch = \"*\"\nkey = [\"args.id\"]\ninject = { arg = \"k\", valid_for = \"1h\" }\n",
    );
    let pay = ActionFacts::new("mcp:a/pay", &Json::Null);
    let first = policy.rule_for(&pay);
    assert!(Arc::ptr_eq(&first, &policy.rule_for(&pay)), "it is compiled once");
    let mut own = policy.rule_for(&pay);
    Arc::make_mut(&mut own).inject = None;
    assert!(policy.rule_for(&pay).inject.is_some(), "a call changes a copy of its own");
    let named = policy.rule_for(&ActionFacts { class_override: Some(Class::Read), ..pay });
    assert_eq!((named.class, named.class_because.as_ref()), (Class::Read, "the caller named it"));
    assert_eq!(policy.rule_for(&pay).class, Class::Consequential);
    // Without a class in the rule each call has the class, the times and the key that its own facts allow.
    let silent = |action: &'static str, read_only: bool| {
        let annotations = Annotations { read_only: Some(read_only), ..Annotations::default() };
        policy.rule_for(&ActionFacts { annotations, trusted: true, ..ActionFacts::new(action, &Json::Null) })
    };
    for _ in 0..2 {
        assert_eq!(silent("mcp:a/look", true).class, Class::Read);
        assert_eq!(silent("mcp:a/look", false).class, Class::Act);
        let model = silent("llm:openai/responses", false);
        assert_eq!(
            (model.class, model.wait.as_secs(), model.inject.is_some()),
            (Class::Generate, 240, false)
        );
        let poke = silent("fn:poke", false);
        assert_eq!((poke.class, poke.wait.as_secs(), poke.inject.is_some()), (Class::Act, 25, true));
    }
}

/// Two spellings of one host are one place, for presets and for names.
#[test]
fn a_host_has_one_spelling() {
    let api = |url: &str| loaded(&format!("[upstream.a]\nurl = \"{url}\"\n")).upstreams["a"].clone();
    for url in ["https://Bank.Example", "https://bank.example.", "https://bank.example:443/v1"] {
        assert_eq!(api(url).service, "bank.example", "{url}");
    }
    for url in ["https://API.Stripe.com", "https://api.stripe.com.", "https://api.stripe.com:443"] {
        assert_eq!(api(url).preset, Some("stripe"), "{url}");
    }
    assert_eq!(api("http://bank.example:443").service, "bank.example:443");
    assert_eq!(api("http://[::1]:9/x").service, "[::1]:9");
}

/// The first effect of a record that was forgotten would go up under the key of the one before.
#[test]
fn facts_stay_while_an_upstream_honours_the_keys_that_were_sent() {
    let rule = "[[rule]]\nmatch = \"cli:pay *\"\ninject = { flag = \"--k\", valid_for = \"45d\" }\n";
    let policy = loaded(&format!("[retention]\nfacts = \"1d\"\n{rule}"));
    assert_eq!(policy.retention.windows, Duration::from_secs(45 * 86_400));
}

#[test]
fn the_documented_example_loads_and_every_field_arrives() {
    let policy = loaded(EXAMPLE);
    assert!(policy.warnings.is_empty(), "{}", policy.warnings);
    assert_eq!(policy.mode, Mode::Guard);
    assert_eq!(policy.retention, Retention::default());
    let rule = rule_of(&policy, "mcp:billing/charge_card", r#"{"args": {}}"#);
    assert_eq!(rule.origin, RuleOrigin::File { path: "semel.toml".into(), line: 8 });
    assert_eq!(rule.class, Class::Consequential);
    assert_eq!(rule.tier(), Tier::Keyed);
    assert!(matches!(rule.effect, Some(EffectWording::Word(crate::answer::EffectWord::Created))));
    assert_eq!(rule.scope, Some(ScopeChoice::Global));
    let texts = |paths: &[json::Path]| paths.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(texts(&rule.sorting.key), ["args.customer", "args.invoice"]);
    assert_eq!(texts(&rule.sorting.content), ["args.description"]);
    assert_eq!(texts(&rule.sorting.volatile), ["args.requested_at"]);
    assert_eq!(rule.sorting.normalize.len(), 1);
    assert_eq!(rule.serialize_by.map(|path| path.to_string()), Some("args.customer".to_owned()));
    let valid_for = Some(Duration::from_secs(86_400));
    assert_eq!(
        rule.inject,
        Some(Inject {
            into: InjectInto::Header("Idempotency-Key".to_owned()),
            form: Default::default(),
            length: None,
            valid_for
        })
    );
    assert_eq!(
        (rule.caller_key, rule.again, rule.failure),
        (CallerKey::Joins, Again::Person, Failure::InDoubt)
    );
    assert_eq!((rule.budget, rule.timeout), (3, Some(Duration::from_secs(30))));
    assert_eq!((rule.window, rule.wait), (Some(Duration::from_secs(86_400)), Duration::from_secs(25)));
    let probe = rule.probe.expect("a probe");
    assert!(
        matches!(&probe.call, RuleCall::Mcp { tool, args } if tool == "billing/list_charges" && args.len() == 1)
    );
    assert!(probe.found.is_some() && probe.reply.is_some() && !probe.before);
    assert_eq!(probe.quiet, Duration::from_secs(5));
    let confirm = rule.confirm.expect("a confirm");
    assert!(matches!(&confirm.call, RuleCall::Http { method, .. } if method == "GET"));
    assert_eq!(confirm.within, Duration::from_secs(120));
    assert!(matches!(&rule.undo, Some(RuleCall::Mcp { tool, .. }) if tool == "billing/refund"));
}

#[test]
fn a_probe_can_name_the_server_of_the_action_itself() {
    let rule = |pattern: &str| {
        format!("[[rule]]\nmatch = \"{pattern}\"\n[rule.probe]\nmcp = \"./list\"\nfound = \"resp.there\"\n")
    };
    let policy = loaded(&rule("mcp:{work,home}/create"));
    let probe = rule_of(&policy, "mcp:home/create", "{}").probe.expect("a probe");
    assert!(matches!(&probe.call, RuleCall::Mcp { tool, .. } if tool == "./list"), "it is kept as written");
    for elsewhere in ["fn:create", "{mcp,fn}:*", "*"] {
        let found = load(&rule(elsewhere)).expect_err(elsewhere);
        let first = found.iter().next().unwrap();
        assert_eq!((first.code, first.line), (DiagnosticCode::BadCall, 4), "{elsewhere}\n{found}");
    }
}

#[test]
fn without_a_policy_every_action_still_has_a_rule() {
    let policy = Policy::default();
    let rule = rule_of(&policy, "mcp:github/create_issue", "{}");
    assert_eq!(
        (rule.origin.clone(), rule.class, rule.tier()),
        (RuleOrigin::Default, Class::Consequential, Tier::Opaque)
    );
    assert_eq!(
        (rule.budget, rule.wait, rule.late_after),
        (2, Duration::from_secs(25), Duration::from_secs(25))
    );
    assert_eq!(rule.window, None);
    assert!(!policy.uses_expressions());
    assert_eq!(rule_of(&policy, "mcp:github/get_issue", "{}").class, Class::Read);
    assert_eq!(command(&policy, "rm -rf x").class, Class::Act);
}

#[test]
fn the_first_match_wins_and_local_rules_come_before_packs() {
    let policy = loaded(
        r#"
include = ["pack:kubectl"]
[[rule]]
match = "cli:kubectl get secrets *"
class = "act"
[[rule]]
match = "mcp:github/issue_write"
when = { "args.method" = "create" }
class = "consequential"
[[rule]]
match = "mcp:github/issue_write"
when = "args.method in ['update', 'close']"
class = "convergent"
[[rule]]
match = "mcp:github/issue_write"
class = "act"
"#,
    );
    assert_eq!(command(&policy, "kubectl get secrets -A").class, Class::Act);
    assert_eq!(command(&policy, "kubectl get pods").class, Class::Read);
    let write = |arguments: &str| rule_of(&policy, "mcp:github/issue_write", arguments);
    assert_eq!(write(r#"{"args": {"method": "create"}}"#).class, Class::Consequential);
    assert_eq!(write(r#"{"args": {"method": "close"}}"#).class, Class::Convergent);
    assert_eq!(write(r#"{"args": {"method": "pin"}}"#).class, Class::Act);
    assert!(policy.uses_expressions());
}

#[test]
fn a_condition_that_fails_gives_no_leave() {
    let policy = loaded(
        r#"
[[rule]]
match = "mcp:a/b"
when = "args.kind == 'harmless'"
class = "read"
key = ["args.kind"]
"#,
    );
    let rule = rule_of(&policy, "mcp:a/b", r#"{"args": {}}"#);
    assert_eq!(rule.class, Class::Consequential);
    assert_eq!(rule.budget, 0);
    assert!(rule.sorting.key.is_empty());
    assert_eq!(
        rule.class_because,
        "the rule's condition could not be evaluated: `args.kind == 'harmless'` failed: No such key: kind"
    );
    assert_eq!(rule_of(&policy, "mcp:a/b", r#"{"args": {"kind": "harmless"}}"#).class, Class::Read);
}

#[test]
fn a_key_that_a_call_cannot_carry_makes_it_no_safer() {
    let policy = loaded("[[rule]]\nmatch = \"cli:pay *\"\ninject = { header = \"K\", valid_for = \"1h\" }\n");
    let codes: Vec<DiagnosticCode> = policy.warnings.iter().map(|warning| warning.code).collect();
    assert_eq!(codes, [DiagnosticCode::WithoutEffect]);
    let tier = |into: &str, action: &str| {
        let text = format!("[[rule]]\nmatch = \"*\"\ninject = {{ {into} = \"--k\", valid_for = \"1h\" }}\n");
        rule_of(&loaded(&text), action, "{}").tier()
    };
    for (into, keyed) in [
        ("header", ["http:POST a/b", "llm:openai/chat.completions", "fn:pay"].as_slice()),
        ("flag", &["cli:pay", "fn:pay"]),
    ] {
        for action in ["http:POST a/b", "llm:openai/chat.completions", "cli:pay", "fn:pay"] {
            assert_eq!(tier(into, action) == Tier::Keyed, keyed.contains(&action), "{into} {action}");
        }
    }
}

#[test]
fn what_a_rule_forbids_that_may_apply_stays_forbidden() {
    let policy = loaded(
        r#"
[[rule]]
match = "mcp:bank/charge"
when = "args.amount > 100"
class = "consequential"
key = ["args.invoice"]
again = "never"
caller_key = "joins"
failure = "in_doubt"
secret = ["args.card"]
[[rule]]
match = "mcp:bank/*"
scope = "global"
window = "30d"
rulings = "agent"
"#,
    );
    let unclear = rule_of(&policy, "mcp:bank/charge", r#"{"args": {"amount": "500"}}"#);
    assert_eq!((unclear.class, unclear.sorting.key.len()), (Class::Consequential, 0));
    assert_eq!((unclear.again, unclear.caller_key), (Again::Never, CallerKey::Joins));
    assert_eq!((unclear.failure, unclear.rulings), (Failure::InDoubt, Rulings::Person));
    assert_eq!(unclear.sorting.secret.len(), 1);
    // The rule that holds if the unclear one does not.
    assert_eq!(unclear.scope, Some(ScopeChoice::Global));
    assert_eq!(unclear.window, Some(Duration::from_secs(30 * 24 * 60 * 60)));
    let small = rule_of(&policy, "mcp:bank/charge", r#"{"args": {"amount": 5}}"#);
    assert_eq!((small.again, small.rulings), (Again::Agent, Rulings::Agent));
}

#[test]
fn strict_takes_every_action_but_a_read_as_consequential() {
    let policy = loaded("mode = \"strict\"\n[[rule]]\nmatch = \"mcp:a/put\"\nclass = \"convergent\"\n");
    for (action, class) in [
        ("mcp:a/get_x", Class::Read),
        ("mcp:a/put", Class::Consequential),
        ("mcp:a/other", Class::Consequential),
        ("llm:openai/chat.completions", Class::Consequential),
        ("http:PUT x/y", Class::Consequential),
        ("http:GET x/y", Class::Read),
    ] {
        assert_eq!(rule_of(&policy, action, "{}").class, class, "{action}");
    }
    assert_eq!(
        rule_of(&policy, "mcp:a/put", "{}").class_because,
        "mode is strict (otherwise convergent: the rule says so)"
    );
}

#[test]
fn what_the_caller_names_comes_before_the_rule() {
    let policy = loaded("[[rule]]\nmatch = \"cli:make\"\nclass = \"act\"\n");
    let arguments = json::parse(r#"{"argv": ["make", "deploy"]}"#).unwrap();
    let facts = ActionFacts {
        class_override: Some(Class::Consequential),
        ..ActionFacts::new("cli:make", &arguments)
    };
    assert_eq!(policy.rule_for(&facts).class, Class::Consequential);
}

#[test]
fn an_earlier_file_wins_and_a_later_one_fills_in() {
    let file = |path: &str, text: &str| PolicyFile { path: path.into(), text: text.to_owned() };
    let policy = Policy::load(vec![
        file("project.toml", "[defaults]\nwait = \"1s\"\n[retention]\nreplies = \"1d\"\n[upstream.a]\nurl = \"https://x\"\n"),
        file("user.toml", "mode = \"observe\"\n[defaults]\nwait = \"2s\"\nbudget = 5\n[retention]\nreplies = \"2d\"\nfacts = \"3d\"\n[upstream.a]\nurl = \"https://y\"\n[mcp.b]\ncommand = [\"c\"]\n"),
    ])
    .unwrap();
    let rule = rule_of(&policy, "fn:x", "{}");
    assert_eq!((rule.wait, rule.budget), (Duration::from_secs(1), 5));
    assert_eq!(policy.mode, Mode::Observe);
    let day = Duration::from_secs(86_400);
    assert_eq!(policy.retention, Retention { replies: day, facts: day * 3, windows: day });
    assert_eq!(policy.upstreams["a"].url, "https://x");
    assert!(policy.mcp.contains_key("b"));
}

#[test]
fn an_http_api_has_defaults_and_every_fault_of_it_is_found() {
    let policy = loaded(
        "[upstream.pay]\nurl = \"http://127.0.0.1:9/base\"\nheaders_env = { Authorization = \"KEY\" }\n\
         [upstream.pay.keys]\nstores = \"2xx\"\nlife = \"24h\"\ndrift_status = 400\n\
         [upstream.open]\nurl = \"https://api.example.com\"\nservice = \"example\"\nspeaks = \"openai\"\n",
    );
    let pay = &policy.upstreams["pay"];
    assert_eq!((pay.service.as_str(), pay.preset), ("127.0.0.1:9", None));
    assert!(pay.injects_credentials() && !policy.upstreams["open"].injects_credentials());
    let lends = |url: &str| {
        let policy = loaded(&format!("[upstream.a]\nurl = \"{url}\"\n"));
        policy.upstreams["a"].lends_credentials()
    };
    assert!(pay.lends_credentials());
    for plain in ["https://a.example", "https://a.example/openai/deployments/gpt-4o-mini-2024-07-18"] {
        assert!(!lends(plain), "{plain}");
    }
    for secret in [
        "https://hooks.slack.com/services/T01234567/B01234567/A1b2C3d4E5f6G7h8I9j0K1l2",
        "https://api.telegram.org/bot123456789:AAE-A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p",
        "https://discord.com/api/webhooks/123456789/A1b2C3d4E5f6G7h8I9j0K1l2",
    ] {
        assert!(lends(secret), "{secret}");
    }
    let keys = upstreams::KeyPolicy {
        stores: file::Stores::Successes,
        life: Some(Duration::from_secs(86_400)),
        drift_status: 400,
        ..Default::default()
    };
    assert_eq!(pay.keys, keys);
    assert_eq!(policy.upstreams["open"].service, "example");
    assert_eq!(policy.upstreams["open"].speaks, file::Speaks::Openai);
    for bad in [
        "[upstream.a]\n",
        "[upstream.a]\nurl = \"api.example.com\"\n",
        "[upstream.a]\nurl = \"https://x?y=1\"\n",
        "[upstream.a]\nurl = \"http://2130706433:1\"\n",
        "[upstream.a]\nurl = \"http://0x7f000001:1\"\n",
        "[upstream.a]\nurl = \"http://127.1\"\n",
        "[upstream.a]\nurl = \"http://0177.0.0.1/x\"\n",
        "[upstream.a]\nurl = \"http://exämple.com\"\n",
        "[mcp.a]\nurl = \"http://2130706433/\"\n",
        "[mcp.a]\nurl = \"http://u:p@x/\"\n",
        "[serve]\notlp = \"http://127.1:4318\"\n",
        "[upstream.'a/b']\nurl = \"https://x\"\n",
        "[upstream.a]\nurl = \"https://x\"\npreset = \"strip\"\n",
        "[upstream.a]\nurl = \"https://x\"\npreset = \"stripe\"\nservice = \"us.stripe\"\n",
        "[upstream.a]\nurl = \"https://api.stripe.com\"\nservice = \"us\"\n",
        "[upstream.a]\nurl = \"https://x\"\nheaders = { Host = \"y\" }\n",
        "[upstream.a]\nurl = \"https://x\"\naccount = \"a b\"\n",
        "[upstream.a]\nurl = \"https://x\"\nheaders_env = { Authorization = \"Bearer abc\" }\n",
        "[upstream.a]\nurl = \"https://x\"\naccount = \"\"\n",
        "[upstream.a]\nurl = \"https://x\"\n[upstream.b]\nurl = \"https://X/\"\nheaders_env = { Authorization = \"K\" }\n",
        "[upstream.a]\nurl = \"https://x\"\nkeys = { drift_status = 200 }\n",
        "[upstream.a]\nurl = \"https://x\"\nkeys = { in_flight_status = 200 }\n",
        "[upstream.a]\nurl = \"https://x\"\nkeys = { created_status = 409 }\n",
        "[upstream.a]\nurl = \"https://x\"\nkeys = { pattern = \"(\" }\n",
        "[upstream.a]\nurl = \"https://x\"\nkeys = { store = \"2xx\" }\n",
        "[preset]\nservice = \"x\"\n",
    ] {
        let file = PolicyFile { path: "semel.toml".into(), text: bad.to_owned() };
        assert!(Policy::load(vec![file]).is_err(), "{bad}");
    }
}

#[test]
fn several_errors_are_found_at_once_each_with_its_place() {
    let text = r#"version = 2
mode = "gard"
inlcude = ["pack:gh"]
[[rule]]
macth = "mcp:a/b"
class = "consequental"
budget = "3"
[[rule]]
match = "mcp:a/{b"
key = ["args..x"]
window = "1 day"
budget = 99
when = 'args.a == == 2'
"#;
    assert_eq!(
        findings(text),
        "\
error[unsupported_version]: version 2 of the policy format is not known
 --> semel.toml:1:11
  |
1 | version = 2
  |           ^
  |
  = help: this semel reads version 1

error[unknown_word]: unknown word `gard`
 --> semel.toml:2:8
  |
2 | mode = \"gard\"
  |        ^^^^^^
  |
  = help: did you mean `guard`?

error[unknown_key]: unknown key `inlcude`
 --> semel.toml:3:1
  |
3 | inlcude = [\"pack:gh\"]
  | ^^^^^^^
  |
  = help: did you mean `include`?

error[unknown_key]: unknown key `macth`
 --> semel.toml:5:1
  |
5 | macth = \"mcp:a/b\"
  | ^^^^^
  |
  = help: did you mean `match`?

error[unknown_word]: unknown word `consequental`
 --> semel.toml:6:9
  |
6 | class = \"consequental\"
  |         ^^^^^^^^^^^^^^
  |
  = help: did you mean `consequential`?

error[wrong_type]: invalid type: string \"3\", expected a whole number
 --> semel.toml:7:10
  |
7 | budget = \"3\"
  |          ^^^

error[bad_match]: bad pattern: unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)
 --> semel.toml:9:9
  |
9 | match = \"mcp:a/{b\"
  |         ^^^^^^^^^^
  |
  = help: `*` matches anything, `{a,b}` alternatives, `[ab]` one of a set; `\\` escapes

error[bad_path]: bad path: a name is expected, such as `args` or `argv`; other names are written [\"in quotes\"]
  --> semel.toml:10:14
   |
10 | key = [\"args..x\"]
   |              ^
   |
   = help: write a path such as args.customer, args.items[*].id or argv[3]

error[bad_duration]: \"1 day\": ` day` is not a unit of time
  --> semel.toml:11:10
   |
11 | window = \"1 day\"
   |          ^^^^^^^
   |
   = help: write a whole number and a unit: 250ms, 30s, 5m, 24h, 30d

error[bad_budget]: a budget is from 0 to 20, not 99
  --> semel.toml:12:10
   |
12 | budget = 99
   |          ^^
   |
   = help: it counts how often semel itself sends an effect again; 2 is usual

error[bad_expression]: bad expression: extraneous input '=='
  --> semel.toml:13:19
   |
13 | when = 'args.a == == 2'
   |                   ^
   |
   = help: expressions are CEL, such as args.method == 'create' && has(args.title)"
    );
}

#[test]
fn a_syntax_error_is_reported_alone() {
    assert_eq!(
        findings("version = 1\nmode = guard\n[[rule]]\nmacth = 1\n"),
        "\
error[toml_syntax]: string values must be quoted, expected literal string
 --> semel.toml:2:8
  |
2 | mode = guard
  |        ^^^^^"
    );
}

#[test]
fn faults_of_one_rule_are_named() {
    let rule = |lines: &str| format!("[[rule]]\nmatch = \"mcp:a/b\"\n{lines}\n");
    let table = [
        ("key = [\"args.a\"]\nvolatile = [\"args.a\"]", DiagnosticCode::ConflictingPaths, 4),
        ("content = [\"args.a\"]\nvolatile = ['args[\"a\"]']", DiagnosticCode::ConflictingPaths, 4),
        ("[rule.probe]\nfound = \"true\"", DiagnosticCode::BadCall, 3),
        ("[rule.probe]\ncmd = [\"x\"]\nmcp = \"a/b\"\nfound = \"true\"", DiagnosticCode::BadCall, 3),
        ("[rule.probe]\nmcp = \"a/b\"", DiagnosticCode::BadCall, 3),
        ("[rule.probe]\nmcp = \"list\"\nfound = \"true\"", DiagnosticCode::BadCall, 4),
        ("[rule.probe]\nmcp = \"../list\"\nfound = \"true\"", DiagnosticCode::BadCall, 4),
        ("[rule.probe]\nmcp = \"./\"\nfound = \"true\"", DiagnosticCode::BadCall, 4),
        ("[rule.probe]\nhttp = \"POST https://x/y\"\nfound = \"true\"", DiagnosticCode::BadCall, 4),
        ("[rule.probe]\nhttp = \"GET https://{args.host}/y\"\nfound = \"true\"", DiagnosticCode::BadCall, 4),
        ("[rule.probe]\nhttp = \"x/y\"\nfound = \"true\"", DiagnosticCode::BadCall, 4),
        ("[rule.probe]\ncmd = [\"{args.program}\"]", DiagnosticCode::BadCall, 4),
        ("[rule.probe]\ncmd = []", DiagnosticCode::BadCall, 4),
        ("[rule.probe]\ncmd = [\"x\", \"{args.a\"]", DiagnosticCode::BadTemplate, 4),
        ("[rule.probe]\ncmd = [\"x\", \"{arg.a}\"]", DiagnosticCode::BadTemplate, 4),
        ("[rule.probe]\ncmd = [\"x\"]\nfound = \"respo.exit == 0\"", DiagnosticCode::BadExpression, 5),
        ("[rule.confirm]\ncmd = [\"x\"]", DiagnosticCode::BadCall, 3),
        ("refused = \"resp.ok\"", DiagnosticCode::BadExpression, 3),
        ("[rule.undo]", DiagnosticCode::BadCall, 3),
        ("[rule.undo]\ncmd = [\"x\"]\nbody = { a = 1 }", DiagnosticCode::BadCall, 5),
        ("[rule.undo]\nhttp = \"GET https://x/y\"\nbody = { a = 1 }", DiagnosticCode::BadCall, 5),
        (
            "[rule.undo]\nhttp = \"POST https://x/y\"\nbody = { a = 1 }\nform = { a = 1 }",
            DiagnosticCode::BadCall,
            6,
        ),
        (
            "[rule.undo]\nhttp = \"POST https://x/y\"\nform = { a = \"{resp.id}\" }",
            DiagnosticCode::BadTemplate,
            5,
        ),
        ("[rule.probe]\nhttp = \"GET https://x/y#z\"\nfound = \"true\"", DiagnosticCode::BadCall, 4),
        (
            "[rule.probe]\nhttp = \"GET https://x/{resp.id}\"\nfound = \"true\"",
            DiagnosticCode::BadTemplate,
            4,
        ),
        ("[rule.probe]\ncmd = [\"x\", \"{reply.id}\"]", DiagnosticCode::BadTemplate, 4),
        ("inject = { valid_for = \"1d\" }", DiagnosticCode::BadInject, 3),
        ("inject = { header = \"a\", arg = \"b\" }", DiagnosticCode::BadInject, 3),
        ("inject = { header = \"A: b\", valid_for = \"1d\" }", DiagnosticCode::BadInject, 3),
        ("inject = { flag = \"key\", valid_for = \"1d\" }", DiagnosticCode::BadInject, 3),
        ("inject = { heeder = \"x\" }", DiagnosticCode::UnknownKey, 3),
        ("dry_run = { flag = \"dry\" }", DiagnosticCode::BadDryRun, 3),
        ("effect = \"create\"", DiagnosticCode::BadEffect, 3),
        ("effect = \"unknown\"", DiagnosticCode::BadEffect, 3),
        ("budget = -1", DiagnosticCode::BadBudget, 3),
        ("window = \"0s\"", DiagnosticCode::BadDuration, 3),
        ("timeout = 30", DiagnosticCode::WrongType, 3),
        ("refused_exit = [0]", DiagnosticCode::BadExitCode, 3),
        ("when = {}", DiagnosticCode::BadWhen, 3),
        ("when = \"\"", DiagnosticCode::BadExpression, 3),
        ("when = 5", DiagnosticCode::WrongType, 3),
        ("normalize = { \"args.a\" = [\"trimm\"] }", DiagnosticCode::UnknownWord, 3),
        ("again = \"nobody\"", DiagnosticCode::UnknownWord, 3),
    ];
    for (lines, code, line) in table {
        let found = load(&rule(lines)).expect_err(lines);
        let first = found.iter().find(|finding| finding.severity == Severity::Error).unwrap();
        assert_eq!((first.code, first.line), (code, line), "{lines}\n{found}");
    }
    assert_eq!(codes("version = 1\n[[rule]]\nclass = \"act\"\n"), [(DiagnosticCode::MissingMatch, 2)]);
    assert_eq!(codes("[[rule]]\nmatch = \"\"\n"), [(DiagnosticCode::BadMatch, 2)]);
    assert_eq!(codes("[[rule]]\nmatch = \"mpc:a/b\"\n"), [(DiagnosticCode::BadMatch, 2)]);
    assert_eq!(codes("rule = 3\n"), [(DiagnosticCode::WrongType, 1)]);
    assert_eq!(
        codes("[defaults]\nbudjet = 3\nwait = \"x\"\n"),
        [(DiagnosticCode::UnknownKey, 2), (DiagnosticCode::BadDuration, 3)]
    );
}

#[test]
fn an_unknown_pack_names_the_nearest() {
    assert_eq!(
        findings("include = [\"pack:kubctl\", \"gh\", \"pack:weather\"]\n"),
        "\
error[unknown_pack]: there is no pack \"pack:kubctl\"
 --> semel.toml:1:12
  |
1 | include = [\"pack:kubctl\", \"gh\", \"pack:weather\"]
  |            ^^^^^^^^^^^^^
  |
  = help: did you mean `pack:kubectl`?

error[unknown_pack]: there is no pack \"gh\"
 --> semel.toml:1:27
  |
1 | include = [\"pack:kubctl\", \"gh\", \"pack:weather\"]
  |                           ^^^^
  |
  = help: did you mean `pack:gh`?

error[unknown_pack]: there is no pack \"pack:weather\"
 --> semel.toml:1:33
  |
1 | include = [\"pack:kubctl\", \"gh\", \"pack:weather\"]
  |                                 ^^^^^^^^^^^^^^
  |
  = help: there are: pack:adyen, pack:anthropic, pack:aws, pack:checkout, pack:discord, pack:filesystem, \
          pack:gh, pack:git, pack:github, pack:google, pack:jira, pack:kubectl, pack:kubernetes, pack:linear, \
          pack:mercadopago, pack:mollie, pack:msgraph, pack:notion, pack:openai, pack:paypal, pack:plaid, \
          pack:playwright, pack:postgres, pack:postmark, pack:razorpay, pack:resend, pack:sendgrid, \
          pack:shell, pack:shopify, pack:slack, pack:square, pack:stripe, pack:twilio, pack:zendesk"
    );
}

#[test]
fn what_is_probably_not_meant_is_a_warning_and_loads() {
    let policy = loaded(
        r#"
[[rule]]
match = "mcp:a/pay"
class = "consequential"
key = ["args.request_id", "arg.customer"]
[[rule]]
match = "mcp:a/pay"
inject = { header = "K" }
[[rule]]
match = "mcp:a/get"
class = "read"
failure = "in_doubt"
[[rule]]
match = "fn:pay"
refused = "reply.no"
effect = "reply.word"
secret = ["reply.pin"]
"#,
    );
    let found: Vec<_> = policy.warnings.iter().map(|finding| (finding.code, finding.line)).collect();
    assert_eq!(
        found,
        [
            (DiagnosticCode::Unprobed, 3),
            (DiagnosticCode::VolatileKey, 5),
            (DiagnosticCode::UnknownRoot, 5),
            (DiagnosticCode::Shadowed, 7),
            (DiagnosticCode::KeyWithoutEnd, 8),
            (DiagnosticCode::WithoutEffect, 10),
            (DiagnosticCode::WithoutEffect, 14),
        ]
    );
    assert!(policy.warnings.iter().last().unwrap().message.contains("`refused`, `effect` does nothing here"));
    let notes = policy.warnings.iter().filter(|finding| finding.severity == Severity::Note);
    let notes: Vec<_> = notes.map(|finding| finding.code).collect();
    assert_eq!(
        notes,
        [DiagnosticCode::Unprobed, DiagnosticCode::KeyWithoutEnd],
        "they cannot always be helped"
    );
    assert!(!policy.warnings.has_errors());
}

#[test]
fn a_path_that_cannot_exist_at_the_rules_door_is_a_warning_that_says_what_to_write() {
    let rule = |pattern: &str, settings: &str| format!("[[rule]]\nmatch = \"{pattern}\"\n{settings}\n");
    for (pattern, settings, help) in [
        ("mcp:mail/send", "key = [\"body.to\"]", "write `args.to`"),
        ("mcp:mail/send", "content = [\"query.text\"]", "write `args.text`"),
        ("mcp:mail/send", "volatile = [\"to\"]", "write `args.to`"),
        ("mcp:mail/send", "secret = [\"headers.authorization\"]", "write `args.authorization`"),
        ("mcp:mail/send", "when = { \"body.kind\" = \"a\" }", "write `args.kind`"),
        ("mcp:mail/send", "when = \"has(body.kind)\"", "there are: args"),
        ("mcp:mail/send", "serialize_by = \"body.to\"", "write `args.to`"),
        ("mcp:mail/send", "normalize = { \"body.to\" = [\"trim\"] }", "write `args.to`"),
        (
            "mcp:mail/send",
            "probe = { mcp = \"./get\", args = { to = \"{body.to}\" }, found = \"resp.ok\" }",
            "write `args.to`",
        ),
        ("mcp:mail/send", "probe = { mcp = \"./get\", found = \"resp.to == body.to\" }", "there are: args"),
        ("fn:charge", "key = [\"argv[1]\"]", "did you mean `args`?"),
        ("http:POST bank/charges", "key = [\"args.invoice\"]", "write `body.invoice`"),
        ("llm:openai/chat", "key = [\"body.model\"]", "write `args.model`"),
        ("cli:pay *", "key = [\"body.to\"]", "there are: argv, cwd, stdin"),
        ("cli:pay *", "key = [\"action\"]", "there are: argv, cwd, stdin"),
    ] {
        let policy = loaded(&rule(pattern, settings));
        let found: Vec<_> = policy.warnings.iter().map(|it| (it.code, it.line, it.help.as_deref())).collect();
        assert_eq!(found, [(DiagnosticCode::UnknownRoot, 3, Some(help))], "{pattern}: {settings}");
    }
    for (pattern, settings) in [
        (
            "mcp:mail/send",
            "key = [\"args.to\"]\nsecret = [\"reply.pin\"]\nwhen = \"action != 'x' && has(args.to)\"",
        ),
        ("http:POST bank/charges", "key = [\"path\", \"query.a\", \"body.b\", \"headers.x-tenant\"]"),
        ("cli:pay *", "key = [\"argv[1]\", \"cwd\", \"stdin\"]"),
        ("{mcp,http}:*", "key = [\"args.to\", \"body.to\"]"),
        ("mcp:a/b", "undo = { mcp = \"./c\", args = { id = \"{reply.id}\" } }"),
    ] {
        let policy = loaded(&rule(pattern, settings));
        assert!(policy.warnings.is_empty(), "{pattern}: {}", policy.warnings);
    }
}

#[test]
fn a_key_that_is_the_same_in_every_call_is_a_warning() {
    let codes = |pattern: &str, settings: &str| -> Vec<DiagnosticCode> {
        let policy = loaded(&format!("[[rule]]\nmatch = \"{pattern}\"\n{settings}\n"));
        policy.warnings.iter().map(|finding| finding.code).collect()
    };
    for (pattern, settings) in [
        ("mcp:a/write", "when = { \"args.method\" = \"create\" }\nkey = [\"args.method\"]"),
        ("http:POST bank/charges", "key = [\"path\"]"),
        ("cli:kubectl rollout restart *", "key = [\"argv[0]\", \"argv[2]\"]"),
    ] {
        assert_eq!(codes(pattern, settings), [DiagnosticCode::ConstantKey], "{pattern}: {settings}");
    }
    for (pattern, settings) in [
        ("mcp:a/write", "when = { \"args.method\" = \"create\" }\nkey = [\"args.method\", \"args.id\"]"),
        ("http:POST bank/charges/*", "key = [\"path\"]"),
        ("http:POST bank/charges", "key = [\"path\", \"body\"]"),
        ("cli:kubectl rollout restart *", "key = [\"argv[3]\"]"),
        ("cli:kubectl * restart", "key = [\"argv[2]\"]"),
    ] {
        assert_eq!(codes(pattern, settings), [], "{pattern}: {settings}");
    }
}

#[test]
fn a_rule_behind_one_with_the_same_condition_never_applies() {
    let text = |second: &str| {
        let rule = |when: &str| format!("[[rule]]\nmatch = \"mcp:a/write\"\nwhen = {when}\n");
        rule("{ \"args.method\" = \"create\" }") + &rule(second)
    };
    assert_eq!(codes(&text("{ \"args.method\" = \"create\" }")), [(DiagnosticCode::Shadowed, 5)]);
    assert_eq!(codes(&text("{ \"args.method\" = \"delete\" }")), []);
    assert_eq!(codes(&text("\"args.method == 'create'\"")), []);
}

#[test]
fn an_error_is_never_lost_behind_many_warnings() {
    let many = "[[rule]]\nmatch = \"mcp:a/b\"\nkey = [\"args.nonce\"]\n".repeat(40);
    let found =
        load(&format!("{many}[[rule]]\nmatch = \"mcp:a/b\"\nwait = \"soon\"\n")).expect_err("an error");
    assert!(found.has_errors() && found.len() <= 50);
}

#[test]
fn a_rule_for_commands_that_finds_nothing_is_a_warning() {
    let policy = loaded(
        r#"
[[rule]]
match = "cli:./charge.sh *"
key = ["args.customer", "arg[1]"]
[[rule]]
match = "cli:pay *"
[[rule]]
match = "cli:pay --now *"
[[rule]]
match = "cli:payroll *"
key = ["argv[1]"]
"#,
    );
    let found: Vec<_> = policy.warnings.iter().map(|finding| (finding.code, finding.line)).collect();
    assert_eq!(
        found,
        [
            (DiagnosticCode::NeverMatches, 3),
            (DiagnosticCode::UnknownRoot, 4),
            (DiagnosticCode::UnknownRoot, 4),
            (DiagnosticCode::Shadowed, 8)
        ]
    );
    let helps: Vec<_> = policy.warnings.iter().filter_map(|finding| finding.help.as_deref()).collect();
    assert_eq!(helps[..2], ["such as \"cli:charge.sh *\"", "did you mean `argv`?"], "{helps:?}");
}

#[test]
fn packs_load_without_findings_and_say_what_they_should() {
    let policy = loaded("include = [\"pack:kubectl\", \"pack:git\", \"pack:gh\"]\n");
    assert!(policy.warnings.is_empty(), "{}", policy.warnings);
    let table = [
        (
            Class::Read,
            "kubectl get pods|kubectl get|/usr/local/bin/kubectl logs web-1|kubectl rollout status deploy/web|\
             kubectl config current-context|git status|git log --oneline|git ls-remote origin|gh issue list|\
             gh pr view 12|gh pr checks|gh search issues semel|gh auth status|kubectl create token robot|\
             kubectl create deploy web --image=w --dry-run=client -o yaml",
        ),
        (
            Class::Convergent,
            "kubectl apply -f web.yaml|kubectl scale deploy/web --replicas=3|kubectl set image deploy/web web=w:2|\
             git push|git push origin main|git fetch",
        ),
        (
            Class::Act,
            "kubectl delete pods --all|kubectl exec web-1 -- get x|kubectl -n prod get pods|kubectl|\
             kubectl config use-context prod|git commit -m x|git branch|git -C x push|gh api repos/a/b|\
             gh issue close 3|kubectl-argo get x|gh pr create --fill|gh pr merge --squash|gh pr comment --body hi",
        ),
        (
            Class::Consequential,
            "kubectl rollout restart deploy/web|kubectl create job x --from=cronjob/y|kubectl run x --image=y|\
             git send-email x.patch|gh issue create --title T --body B|gh issue create|gh pr create --title T --body B|\
             gh release create v1|gh release create v1 -R a/b|gh pr merge 12|gh issue comment 3 --body hi|\
             gh workflow run deploy.yml|gh repo create x",
        ),
    ];
    for (class, lines) in table {
        for line in lines.split('|') {
            assert_eq!(command(&policy, line.trim()).class, class, "{line}");
        }
    }
}

#[test]
fn the_pack_for_gh_tells_the_body_apart_where_it_can() {
    let policy = loaded("include = [\"pack:gh\"]\n");
    let content = |line: &str| -> Vec<String> {
        command(&policy, line).sorting.content.iter().map(ToString::to_string).collect()
    };
    assert_eq!(content("gh issue create --title T --body B"), ["argv[6]"]);
    assert_eq!(content("gh pr create --repo a/b --title T --body B --draft"), ["argv[8]"]);
    assert!(content("gh issue create --body B --title T").is_empty());
    assert!(content("gh issue create --title T --label x --body B").is_empty());
    assert_eq!(command(&policy, "gh release create v1 --notes x").tier(), Tier::Probed);
    assert_eq!(command(&policy, "gh release create v1 --repo a/b").tier(), Tier::Opaque);
    assert_eq!(command(&policy, "gh release create").tier(), Tier::Opaque);
}

#[test]
fn the_probe_of_a_release_answers_no_only_when_it_was_told_so() {
    let policy = loaded("include = [\"pack:gh\"]\n");
    let found = command(&policy, "gh release create v1").probe.unwrap().found.unwrap();
    let attempt = json::parse(r#"{"started": "2026-05-04T10:00:30.250Z"}"#).unwrap();
    let answer =
        |resp: &str| found.eval_bool(&[("resp", &json::parse(resp).unwrap()), ("attempt", &attempt)]).ok();
    let release = |draft: bool, published: &str| {
        answer(&format!(r#"{{"exit": 0, "stderr": "", "isDraft": {draft}, "publishedAt": "{published}"}}"#))
    };
    assert_eq!(release(false, "2026-05-04T10:00:31Z"), Some(true));
    assert_eq!(release(true, "2026-05-04T10:00:31Z"), None, "its files may be missing");
    assert_eq!(release(false, "2025-05-04T10:00:31Z"), None, "it was there before");
    assert_eq!(answer(r#"{"exit": 1, "stderr": "release not found"}"#), Some(false));
    assert_eq!(answer(r#"{"exit": 1, "stderr": "error connecting to api.github.com"}"#), None);
}

#[test]
fn a_condition_can_ask_for_a_part_that_a_request_does_not_have() {
    let policy = loaded(
        "[[rule]]\nmatch = \"{http,mcp}:*\"\nwhen = \"has(body.a) || has(query.b) || 'c' in headers\"\nclass = \"read\"\n",
    );
    let class = |action: &str, arguments: &str| {
        policy.rule_for(&ActionFacts::new(action, &json::parse(arguments).unwrap())).class
    };
    assert_eq!(class("http:POST x/y", r#"{"path": "/y"}"#), Class::Act);
    assert_eq!(class("http:POST x/y", r#"{"path": "/y", "query": {"b": "1"}}"#), Class::Read);
    assert_eq!(class("mcp:x/poke", r#"{"args": {}}"#), Class::Consequential, "a tool has no body to ask for");
}

#[test]
fn a_class_holds_for_all_calls_only_where_no_condition_is_asked_first() {
    let policy = loaded(
        r#"
[[rule]]
match = "mcp:shop/orders"
when = { "args.method" = "get" }
class = "read"
[[rule]]
match = "mcp:shop/{look,orders}"
class = "read"
[[rule]]
match = "mcp:shop/look"
class = "act"
"#,
    );
    let of_all = |policy: &Policy, action: &str| policy.class_of_all(&ActionFacts::new(action, &Json::Null));
    assert_eq!(of_all(&policy, "mcp:shop/look"), Some(Class::Read), "the first rule holds");
    assert_eq!(of_all(&policy, "mcp:shop/orders"), None, "it depends on the method");
    assert_eq!(of_all(&policy, "mcp:shop/get_order"), Some(Class::Read), "its name says so");
    assert_eq!(of_all(&policy, "mcp:shop/charge_card"), Some(Class::Consequential));
    for action in ["mcp:shop/look", "mcp:shop/get_order", "mcp:shop/charge_card", "mcp:shop/poke"] {
        for arguments in [r#"{"args": {}}"#, r#"{"args": {"method": "get"}}"#] {
            assert_eq!(of_all(&policy, action), Some(rule_of(&policy, action, arguments).class), "{action}");
        }
    }
    let strict = loaded("mode = \"strict\"\n");
    assert_eq!(of_all(&strict, "mcp:shop/poke"), Some(Class::Consequential));
}

#[test]
fn an_explanation_says_which_rule_and_why_not_the_others() {
    let policy = loaded(
        r#"
[[rule]]
match = "mcp:other/*"
class = "read"
[[rule]]
match = "mcp:github/*"
when = { "args.method" = "create" }
class = "convergent"
[[rule]]
match = "mcp:github/issue_write"
key = ["args.title", "args.repo"]
window = "90m"
"#,
    );
    let arguments = json::parse(r#"{"args": {"method": "update", "title": "x"}}"#).unwrap();
    let (rule, explanation) = policy.explain(&ActionFacts::new("mcp:github/issue_write", &arguments));
    assert_eq!(rule.class, Class::Act);
    assert_eq!(
        serde_json::to_value(explanation).unwrap(),
        serde_json::json!({
            "action": "mcp:github/issue_write",
            "mode": "guard",
            "rule": "semel.toml:9",
            "earlier": [
                { "rule": "semel.toml:2", "match": "mcp:other/*", "why_not": { "part": "match" } },
                { "rule": "semel.toml:5", "match": "mcp:github/*",
                  "why_not": { "part": "when", "condition": "args.method = \"create\"" } },
            ],
            "class": "act",
            "because": "its name has the verb `write`",
            "tier": "opaque",
            "identity": {
                "key": ["args.title", "args.repo"], "key_required": false, "missing": ["args.repo"],
                "content": [], "volatile": [], "secret": [], "by_name": {},
            },
            "scope": null,
            "caller_key": "decides",
            "again": "agent",
            "rulings": "person",
            "failure": "table",
            "effect": null,
            "refused": null,
            "window": "90m",
            "wait": "25s",
            "timeout": null,
            "late_after": "25s",
            "budget": 2,
            "serialize_by": null,
            "inject": null,
            "probe": null,
            "probe_quiet": null,
            "confirm": null,
            "undo": null,
            "fitting_pack": null,
        })
    );
    let (_, explanation) = Policy::default().explain(&ActionFacts::new("mcp:github/issue_write", &arguments));
    assert_eq!(explanation.fitting_pack, Some("github"));
}

#[test]
fn a_rule_for_a_place_that_no_upstream_has_is_pointed_out() {
    let with = |pattern: &str| {
        findings(&format!(
            "version = 1\n[upstream.bank]\nurl = \"https://api.bank.example/v1\"\n[[rule]]\nmatch = \"{pattern}\"\nclass = \"act\"\n"
        ))
    };
    for missing in [
        "http:POST bank/v1/charges",
        "http:POST API.bank.example/v1/*",
        "http:POST api.bank.example/charges",
        "http:POST https://api.bank.example/v1/charges",
        "http:POST /charges",
    ] {
        let found = with(missing);
        assert!(
            found.contains("never_matches") && found.contains("api.bank.example/v1"),
            "{missing}: {found}"
        );
    }
    for there in [
        "http:POST api.bank.example/v1/charges",
        "http:* api.bank.example/**",
        "http:POST *.bank.example/charges",
        "http:POST {a,b}/x",
        "mcp:bank/charge",
        "cli:sh",
    ] {
        assert!(!with(there).contains("never_matches"), "{there}: {}", with(there));
    }
}

#[test]
fn prices_and_where_messages_go_are_read_and_checked() {
    let policy = load(
        "[serve]\nmetrics = \"open\"\notlp = \"http://127.0.0.1:4318\"\n\
         [notify]\ncommand = [\"tell\", \"me\"]\nurl = \"https://example.com/hook\"\nsecret_env = \"HOOK\"\n\
         [prices.\"gpt-5*\"]\ninput = 2.5\noutput = 10\ncache_read = 0.25\n",
    )
    .expect("it holds together");
    assert_eq!(policy.serve.metrics, Some(file::MetricsFor::Open));
    assert_eq!(policy.serve.otlp.as_deref(), Some("http://127.0.0.1:4318"));
    let servers::Notify { command, url } = policy.notify.expect("somebody is told");
    assert_eq!(command.map(|command| command.argv), Some(vec!["tell".to_owned(), "me".to_owned()]));
    assert_eq!(url.and_then(|url| url.secret_env).as_deref(), Some("HOOK"));
    let price = prices::Price { input: 2.5, output: 10.0, cache_read: Some(0.25), cache_write: None };
    assert_eq!(policy.prices.of("gpt-5-mini"), Some(price));
    for bad in [
        "[serve]\notlp = \"localhost:4318\"\n",
        "[serve]\nmetrics = \"closed\"\n",
        "[notify]\n",
        "[notify]\nsecret_env = \"HOOK\"\n",
        "[notify]\ncommand = []\n",
        "[notify]\ncommand = [\"tell\"]\nprivate = true\n",
        "[notify]\ncommand = \"tell me\"\n",
        "[serve]\ntls = { certificate = \"cert.pem\" }\n",
        "[serve]\ntls = { certificate = \"cert.pem\", key = \"\" }\n",
        "[serve]\ntls = \"cert.pem\"\n",
        "[serve]\ngrace = \"soon\"\n",
        "[serve]\ngrace = \"1h\"\n",
        "[notify]\nurl = \"ftp://x\"\n",
        "[prices.m]\ninput = -1\n",
        "[prices.m]\ninput = \"2\"\n",
        "[prices.m]\noutput = nan\n",
        "[prices.m]\ncached = 1\n",
        "[prices.m]\ncache_write = -1\n",
    ] {
        assert!(load(bad).is_err(), "{bad}");
    }
}

#[test]
fn the_old_name_of_notify_is_read_and_said_to_be_old() {
    let old = "[serve.webhook]\nurl = \"https://example.com/old\"\n";
    let url =
        |policy: &Policy| policy.notify.as_ref().and_then(|it| it.url.as_ref()).map(|it| it.url.clone());
    let policy = load(old).expect("it holds together");
    assert_eq!(url(&policy).as_deref(), Some("https://example.com/old"));
    assert!(policy.warnings.render(false).contains("`[serve.webhook]` is called `[notify]` now"));
    let both = format!("{old}[notify]\nurl = \"https://example.com/new\"\n");
    let policy = load(&both).expect("it holds together");
    assert_eq!(url(&policy).as_deref(), Some("https://example.com/new"));
    assert!(policy.warnings.render(false).contains("does nothing beside `[notify]`"));
}

#[test]
fn every_key_of_the_example_is_in_the_schema() {
    fn names(schema: &serde_json::Value, into: &mut Vec<String>) {
        match schema {
            serde_json::Value::Object(members) => {
                for (name, value) in members {
                    if name == "properties" {
                        into.extend(value.as_object().into_iter().flat_map(|object| object.keys().cloned()));
                    }
                    names(value, into);
                }
            }
            serde_json::Value::Array(items) => items.iter().for_each(|item| names(item, into)),
            _ => {}
        }
    }
    fn keys(value: &toml::Value, into: &mut Vec<String>) {
        match value {
            toml::Value::Table(table) => {
                for (name, value) in table {
                    into.push(name.clone());
                    // Names below these are the user's own.
                    if !["args", "normalize", "when"].contains(&name.as_str()) {
                        keys(value, into);
                    }
                }
            }
            toml::Value::Array(items) => items.iter().for_each(|item| keys(item, into)),
            _ => {}
        }
    }
    let schema = schema::schema();
    assert_eq!(schema["$schema"], "http://json-schema.org/draft-07/schema#");
    assert_eq!(schema["additionalProperties"], false);
    assert!(schema.to_string().contains("`./tool`"), "the schema says how to name the action's own server");
    let (mut known, mut used) = (Vec::new(), Vec::new());
    names(&schema, &mut known);
    keys(&toml::from_str(EXAMPLE).unwrap(), &mut used);
    used.extend(["include", "when", "secret", "late_after", "refused_exit", "dry_run"].map(str::to_owned));
    for name in used {
        assert!(known.contains(&name), "{name}");
    }
}

/// Lines of a policy, whole and damaged, so that random texts reach further than the syntax.
fn any_text() -> impl Strategy<Value = String> {
    let lines: Vec<&'static str> = EXAMPLE.lines().collect();
    let line = prop_oneof![
        6 => proptest::sample::select(lines.clone()).prop_map(str::to_owned),
        2 => (proptest::sample::select(lines), 0..60usize, "\\PC{0,3}").prop_map(|(line, at, noise)| {
            let at = line.char_indices().nth(at).map_or(line.len(), |(at, _)| at);
            format!("{}{noise}{}", &line[..at], &line[at..])
        }),
        1 => "[a-z_]{1,8} = (\"\\PC{0,8}\"|[0-9]{1,20}|\\{ [a-z]{1,3} = [0-9] \\}|\\[\"[a-z.{}]{0,9}\"\\])",
        1 => "\\PC{0,20}",
    ];
    proptest::collection::vec(line, 0..25).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_loading_or_rendering_panic(text in any_text()) {
        match load(&text) {
            Ok(policy) => {
                let _ = policy.warnings.render(true);
                let _ = rule_of(&policy, "mcp:billing/charge_card", r#"{"args": {"customer": 1}}"#);
            }
            Err(found) => {
                prop_assert!(found.has_errors());
                prop_assert!(!found.render(false).is_empty());
                prop_assert!(found.iter().all(|finding| finding.line > 0 && finding.column > 0));
            }
        }
    }

    #[test]
    fn no_name_makes_recognition_panic(name in "\\PC{0,40}", trusted in any::<bool>()) {
        let (_, because) = recognise::class(&name, Annotations::default(), trusted);
        prop_assert!(!because.is_empty());
    }

    #[test]
    fn no_text_makes_an_expression_or_a_template_panic(text in "[a-z.()\\[\\]{}'\"0-9=!&|?:+ -]{0,40}") {
        let arguments = json::parse(r#"{"a": [1, "x", {"b": null}]}"#).unwrap();
        if let Ok(expression) = expression::Expression::compile(&text) {
            let _ = expression.eval(&[("a", &arguments)]);
        }
        if let Ok(template) = template::Template::parse(&text) {
            let _ = template.render(&arguments, template::Encoding::Url);
            let _ = template.value(&arguments);
        }
    }
}

#[test]
fn servers_are_read_with_the_place_that_names_them() {
    let text = r#"
[serve]
listen = "[::1]:7000"
allowed_origins = ["https://app.example.com"]
tls = { certificate = "tls/cert.pem", key = "/run/key.pem" }

[mcp.billing]
command = ["npx", "billing"]
env = { TOKEN = "x" }
cwd = "tools"
trusted = true

[mcp.github]
url = "https://mcp.example.com/v1"
headers_env = { Authorization = "GITHUB_TOKEN" }
tools = false
"#;
    let policy =
        Policy::load(vec![PolicyFile { path: "/etc/semel.toml".into(), text: text.to_owned() }]).unwrap();
    assert_eq!(policy.serve.listen, "[::1]:7000".parse().ok());
    let files = servers::TlsFiles { certificate: "/etc/tls/cert.pem".into(), key: "/run/key.pem".into() };
    assert_eq!(policy.serve.tls, Some(files));
    let billing = &policy.mcp["billing"];
    assert_eq!((billing.line, billing.trusted), (7, Some(true)));
    let servers::McpEndpoint::Command { argv, env, cwd } = &billing.reach else { panic!("{billing:?}") };
    assert_eq!((argv.len(), env.len(), cwd.as_deref()), (2, 1, Some(Path::new("/etc/tools"))));
    let servers::McpEndpoint::Url { headers_env, private, .. } = &policy.mcp["github"].reach else {
        panic!()
    };
    assert_eq!((headers_env[0].1.as_str(), *private), ("GITHUB_TOKEN", false));
}

#[test]
fn servers_that_do_not_hold_together_are_named() {
    let text = r#"[serve]
listen = "localhost"
allowed_origins = ["app.example.com"]
[mcp.none]
[mcp.both]
command = ["a"]
url = "http://b"
[mcp."a/b"]
command = [""]
headers = { X = "1" }
[mcp.remote]
url = "https://a"
cwd = "x"
headers = { Host = "b", "X Y" = "1", Ok = "a\nb" }
"#;
    let found =
        Policy::load(vec![PolicyFile { path: "semel.toml".into(), text: text.to_owned() }]).unwrap_err();
    let places: Vec<(usize, &str)> =
        found.iter().map(|finding| (finding.line, finding.message.as_str())).collect();
    assert_eq!(
        places,
        [
            (2, "`localhost` is no address with a port"),
            (3, "`app.example.com` is no origin"),
            (4, "`none` has neither `command` nor `url`"),
            (7, "there are both `command` and `url`"),
            (8, "`a/b` cannot name a server"),
            (9, "`command` names no program"),
            (10, "a command has no headers"),
            (13, "an address has no directory"),
            (14, "`Host` is written by the connection itself"),
            (14, "`X Y` is no header name"),
            (14, "the value of `Ok` has control characters"),
        ]
    );
    let unknown = "[mcp.x]\ncomand = [\"a\"]\n[serve]\nlisten_on = 1\n";
    let found =
        Policy::load(vec![PolicyFile { path: "semel.toml".into(), text: unknown.to_owned() }]).unwrap_err();
    let helps: Vec<_> = found.iter().filter_map(|finding| finding.help.as_deref()).collect();
    assert!(helps.contains(&"did you mean `command`?"), "{found}");
}
