//! `spec/golden/shell.txt`: command lines as agents write them, each with its judgement.

use proptest::prelude::*;
use semel_core::digest::Digest;
use semel_core::policy::rule::RuleOrigin;
use semel_core::policy::{Policy, PolicyFile};
use semel_core::shell::{DenialReason, Guarded, Judgement, calls, judge};
use semel_core::subject::quoted_for_a_shell;
use std::sync::OnceLock;

const LINES: &str = include_str!("../../../../spec/golden/shell.txt");

/// The judgement in the words of the golden lines.
fn words(judgement: &Judgement) -> String {
    let names = |names: &[String]| names.join(", ");
    match judgement {
        Judgement::Pass => "pass".to_owned(),
        Judgement::Bracket(guarded) => {
            let doubt = if guarded.is_known { "" } else { "?" };
            format!("{}{doubt} {}", guarded.rule.class, guarded.name)
        }
        Judgement::Deny(denial) => {
            let reason = match denial.reason {
                DenialReason::Place => "alone",
                DenialReason::Several => "each alone",
                DenialReason::Unreadable => "unreadable",
            };
            format!("{reason}: {}", names(&denial.names))
        }
    }
}

fn policy(text: &str) -> Policy {
    let file = PolicyFile { path: "semel.toml".into(), text: text.to_owned() };
    Policy::load(vec![file]).unwrap_or_else(|found| panic!("{found}")).for_shell()
}

/// The judgements and lines of the golden file.
fn golden() -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for line in LINES.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.strip_prefix("> ").or(line.strip_prefix('>')) {
            Some(more) => {
                let (_, command) = found.last_mut().expect("a line before its next lines");
                command.push('\n');
                command.push_str(more);
            }
            None => {
                let (judgement, command) = line.split_once(" $ ").unwrap_or_else(|| panic!("{line}"));
                found.push((judgement.trim().to_owned(), command.to_owned()));
            }
        }
    }
    found
}

#[test]
fn the_golden_lines_are_judged_as_they_say() {
    let policy = policy("version = 1");
    let golden = golden();
    let wrong: Vec<String> = golden
        .iter()
        .map(|(expected, line)| (expected, line, words(&judge(line, "/work", &policy))))
        .filter(|(expected, _, found)| *expected != found)
        .map(|(expected, line, found)| format!("{line}\n    should be {expected}\n    but is    {found}"))
        .collect();
    assert!(golden.len() >= 300, "{}", golden.len());
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), golden.len(), wrong.join("\n"));
}

fn guarded(policy: &Policy, line: &str) -> Guarded {
    match judge(line, "/work", policy) {
        Judgement::Bracket(guarded) => *guarded,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn the_rules_of_the_user_come_before_the_pack() {
    let own = policy(
        "version = 1\n\
         [[rule]]\nmatch = \"cli:git push staging *\"\nclass = \"read\"\n\
         [[rule]]\nmatch = \"cli:deploy.sh\"\nclass = \"consequential\"\n\
         [[rule]]\nmatch = \"http:POST localhost:3000/pay\"\nclass = \"consequential\"\n",
    );
    let judged = |line: &str| words(&judge(line, "/work", &own));
    assert_eq!(judged("git push staging main"), "pass");
    assert_eq!(judged("git push origin main"), "convergent git push origin");
    assert_eq!(judged("cd app && ./deploy.sh prod"), "consequential deploy.sh prod");
    assert_eq!(judged("deploy.sh 'prod"), "unreadable: deploy.sh");
    assert_eq!(judged("curl -d a=1 http://localhost:3000/pay"), "consequential curl");
    assert_eq!(judged("curl -d a=1 http://localhost:3000/buy"), "pass");
}

#[test]
fn a_pack_keeps_its_rules_and_its_default_for_a_program_guards_nothing() {
    let packs = policy("version = 1\ninclude = [\"pack:gh\", \"pack:git\", \"pack:kubectl\"]");
    let judged = |line: &str| words(&judge(line, "/work", &packs));
    assert_eq!(judged("git add -A && git commit -m x"), "pass");
    assert_eq!(judged("gh pr checkout 12"), "pass");
    assert_eq!(judged("gh api repos/a/b/issues -f title=t"), "consequential gh api");
    assert!(guarded(&packs, "gh release create v1.0.0 --notes n").rule.probe.is_some());
    // A strict policy would guard `ls`.
    let strict = policy("version = 1\nmode = \"strict\"");
    assert_eq!(words(&judge("ls && git push", "/work", &strict)), "consequential git push");
}

#[test]
fn a_call_is_what_rules_and_keys_know() {
    let policy = policy("version = 1\ninclude = [\"pack:stripe\"]");
    let arguments = |line: &str| guarded(&policy, line).arguments.canonical();
    assert_eq!(
        arguments("git -C sub push 'a b'"),
        r#"{"argv":["git","push","a b","-C","sub"],"cwd":"/work"}"#
    );
    assert_eq!(
        arguments("cd a/../b && A=1 && export B=2 && C='3 4' sudo npm publish"),
        r#"{"argv":["npm","publish"],"cwd":"/work/b","env":{"A":"1","B":"2","C":"3 4"}}"#
    );
    assert_eq!(
        arguments("kubectl -n prod run x --image=y -- sh -c ls"),
        r#"{"argv":["kubectl","run","x","--image=y","-n","prod","--","sh","-c","ls"],"cwd":"/work"}"#
    );
    let stdin = Digest::of(&[b"hi\n"]);
    let mail = format!(r#"{{"argv":["mail","bob"],"cwd":"/work","stdin":"{stdin}"}}"#);
    for line in ["mail bob <<< hi", "mail bob <<'END'\nhi\nEND", "mail bob <<-END\n\thi\n\tEND\n"] {
        assert_eq!(arguments(line), mail, "{line:?}");
    }
    let charge =
        guarded(&policy, "curl https://api.stripe.com/v1/charges -u sk: -H 'A: b' -d amount=5 -d x=y");
    assert_eq!(charge.action, "http:POST api.stripe.com/v1/charges");
    let expected = r#"{"body":{"amount":"5","x":"y"},"headers":{"a":"b","authorization":"sk:"},"path":"/v1/charges","query":""}"#;
    assert_eq!(charge.arguments.canonical(), expected);
    // Nobody can put a key into the command.
    assert!(charge.rule.inject.is_none() && charge.rule.origin != RuleOrigin::Default);
}

#[test]
fn a_bracket_stands_around_the_pipeline_and_before_its_document() {
    let policy = policy("version = 1");
    let bracketed = |line: &str| guarded(&policy, line).bracketed(line, "began 1", "ended 1");
    assert_eq!(
        bracketed("cd é && yes | time git push 2>&1 && ls # git"),
        "cd é && began 1 && yes | time git push 2>&1 && ended 1 && ls # git"
    );
    assert_eq!(
        bracketed("gh issue create -t t -F - <<'END'\nbody\nEND\n"),
        "began 1 && gh issue create -t t -F - <<'END' && ended 1\nbody\nEND\n"
    );
    assert_eq!(bracketed("bash -c 'cd x && git push'"), "began 1 && bash -c 'cd x && git push' && ended 1");
}

/// A line that took more than linear time, or recursed without bound, would not come to its end here.
#[test]
fn a_hostile_line_is_read_in_one_go() {
    let policy = policy("version = 1");
    let times = |text: &str| text.repeat(100_000 / text.len());
    for piece in [
        "(",
        "$(",
        "`",
        "${",
        "$((",
        "((",
        "{ ",
        "\"$(",
        "<(",
        "'",
        "\"",
        "\\",
        "{",
        "{,",
        "[[ ",
        "case x in ",
        "if ",
        "for ",
        "a<<E ",
        "a<<E\n",
        "a<<E\nE\n",
        "$(cat <<E\n",
        "9",
        "9<",
        "a|",
        "a||",
        "a&&",
        "#",
        "# \n",
        "f()",
        "!",
        "A=(",
        "bash -c ",
        "git push;",
        "git push&&",
        "cd a&&",
        "A=b ",
        "sudo ",
        "git -C ",
        "stripe a create;",
        "é",
        "$'\\",
        "~",
        "curl -d a=1 ",
    ] {
        let line = times(piece);
        let _read = calls(&line);
        let _read = calls(&format!("{line}{}", times(")")));
    }
    for piece in ["git push;", "cd a&&", "A=b&&", "A=b git status&&", "bash -c ls&&"] {
        let _judged = judge(&piece.repeat(2_000), "/work", &policy);
    }
    let nested = (0..60).fold("git push".to_owned(), |inner, _| format!("echo $({inner})"));
    assert_eq!(words(&judge(&nested, "/work", &policy)), "unreadable: git");
    let scripts =
        (0..6).fold("git push".to_owned(), |inner, _| format!("bash -c {}", quoted_for_a_shell(&inner)));
    assert_eq!(words(&judge(&scripts, "/work", &policy)), "unreadable: git");
}

proptest! {
    /// Behind a guarded command there may be anything: it is not passed.
    #[test]
    fn a_guarded_command_at_the_front_never_passes(
        pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..12)
    ) {
        let policy = POLICY.get_or_init(|| policy("version = 1"));
        for separator in [" ", "\n", " && ", " | ", ";"] {
            let line = format!("git push{separator}{}", pieces.concat());
            match judge(&line, "/work", policy) {
                Judgement::Pass => prop_assert!(false, "{line:?}"),
                Judgement::Bracket(guarded) => {
                    let text = guarded.bracketed(&line, "began", "ended");
                    prop_assert!(text.contains("began && git push"), "{line:?}: {text:?}");
                }
                Judgement::Deny(denial) => prop_assert!(!denial.names.is_empty()),
            }
        }
    }
}

static POLICY: OnceLock<Policy> = OnceLock::new();

const PIECES: &[&str] = &[
    "a",
    " ",
    "\n",
    ";",
    "&",
    "&&",
    "|",
    "||",
    "(",
    ")",
    "{",
    "}",
    "{ ",
    "; }",
    "'",
    "\"",
    "\\",
    "`",
    "$",
    "$(",
    "${",
    "$((",
    "))",
    "<",
    ">",
    "<<",
    "<<E",
    "E\n",
    "\nE\n",
    "<<<",
    "2>&1",
    "<(",
    "#",
    " #",
    "=",
    "A=(",
    "!",
    " ! ",
    "if ",
    " then ",
    " fi",
    "for x in",
    " do ",
    " done",
    "case x in",
    " esac",
    ";;",
    "[[ ",
    " ]]",
    "f() ",
    "é",
    "~",
    "*",
    "bash -c ",
    "git push",
    "time ",
    "exec ",
    "-",
];
