//! The six acts. Each runs real processes and then counts in the book.

use super::judge::Act;
use super::stage::{CountMeaning, Narrator};
use super::world::{DemoWorld, PendingRun, Rules, RunAnswer, charge_in};
use anyhow::Context as _;
use owo_colors::OwoColorize;

type Play = fn(&Narrator, &DemoWorld, usize) -> anyhow::Result<Act>;

/// All acts, in order. Orders are not shared between them.
pub const ACTS: [Play; 6] = [without_semel, with_semel, reworded, at_once, on_purpose, unprovable];

/// In cents.
const AMOUNT: &str = "4900";

/// A fan-out of workers that were all given the same task.
const CALLERS: usize = 12;

/// How often an agent tries before it gives up.
const TRIES_MAX: usize = 3;

fn without_semel(stage: &Narrator, world: &DemoWorld, number: usize) -> anyhow::Result<Act> {
    let mut act = Act::new("without semel", "the retry after a lost answer paid again");
    stage.title(number, &act)?;
    world.kill_next_charge("1001")?;
    let pay = world.pay(&["charge", "1001", AMOUNT, "Order 1001"]);
    for _ in 0..TRIES_MAX {
        stage.does(r#"pay charge 1001 4900 "Order 1001""#)?;
        let output = world.run_bare(&pay)?;
        if output.status.success() {
            let charge = charge_in(&output.stdout).unwrap_or_default();
            stage.gets(format_args!("exit 0: {}, {charge}", "ran".green()))?;
            break;
        }
        let ended = output.status.to_string();
        stage.gets(format_args!("{}, no answer; so the agent tries again", ended.yellow()))?;
    }
    stage.count(world, &mut act, "1001", 2, CountMeaning::Bad("paid twice"))?;
    Ok(act)
}

fn with_semel(stage: &Narrator, world: &DemoWorld, number: usize) -> anyhow::Result<Act> {
    let mut act = Act::new(
        "with semel",
        "a probe found what the lost answer had hidden; the retry was answered from the record",
    );
    stage.title(number, &act)?;
    world.kill_next_charge("1002")?;
    let pay = world.pay(&["charge", "1002", AMOUNT, "Order 1002"]);
    let probe = world.pay_text(&["find", "1002"])?;
    let flags = ["--probe", probe.as_str()];
    stage.aside(r#"semel.toml: class = "consequential""#);
    stage.does(r#"semel run --probe "pay find 1002" -- pay charge 1002 4900 "Order 1002""#)?;
    let first = world.run(Rules::Payments, &flags, &pay)?;
    stage.answered(&first)?;
    act.must(first.succeeded("ran") && first.text("evidence") == "probed", || told("the caller", &first));
    stage.does("the same again")?;
    let second = world.run(Rules::Payments, &flags, &pay)?;
    stage.answered(&second)?;
    expect_same(&mut act, "the retry", &first, &second);
    stage.count(world, &mut act, "1002", 1, CountMeaning::Good("paid once"))?;
    Ok(act)
}

fn reworded(stage: &Narrator, world: &DemoWorld, number: usize) -> anyhow::Result<Act> {
    let mut act = Act::new(
        "the agent rewords its retry",
        "a rule says that the order is the identity, and the memo prose",
    );
    stage.title(number, &act)?;
    stage.aside(r#"semel.toml: key = ["argv[6]"], the order; content = ["argv[8]"], the memo"#);
    world.kill_next_charge("1003")?;
    let probe = world.pay_text(&["find", "1003"])?;
    let mut first: Option<RunAnswer> = None;
    for memo in ["Order 1003", "Payment for your order no. 1003", "Retry: charging order #1003, thank you!"] {
        stage.does(format_args!(r#"semel run --probe "pay find 1003" -- pay charge 1003 4900 "{memo}""#))?;
        let pay = world.pay(&["charge", "1003", AMOUNT, memo]);
        let answer = world.run(Rules::PaymentsByOrder, &["--probe", &probe], &pay)?;
        stage.answered(&answer)?;
        match &first {
            None => {
                act.must(answer.succeeded("ran"), || told("the caller", &answer));
                first = Some(answer);
            }
            Some(first) => expect_same(&mut act, "the reworded retry", first, &answer),
        }
    }
    stage.count(world, &mut act, "1003", 1, CountMeaning::Good("paid once"))?;
    Ok(act)
}

fn at_once(stage: &Narrator, world: &DemoWorld, number: usize) -> anyhow::Result<Act> {
    let mut act =
        Act::new("twelve callers at once", "one of twelve ran, and all were answered with its charge");
    stage.title(number, &act)?;
    stage.does(r#"semel run -- pay charge 1004 4900 "Order 1004"     (12 processes)"#)?;
    let pay = world.pay(&["charge", "1004", AMOUNT, "Order 1004"]);
    // All are started before the first is waited for. Those of a start that failed end by themselves.
    let started: Vec<anyhow::Result<PendingRun>> =
        (0..CALLERS).map(|_| world.start_run(Rules::Payments, &[], &pay)).collect();
    let answers: Vec<anyhow::Result<RunAnswer>> =
        started.into_iter().map(|running| running.and_then(PendingRun::answer)).collect();
    let answers = answers.into_iter().collect::<anyhow::Result<Vec<RunAnswer>>>()?;
    let of = |outcome: &str| answers.iter().filter(|answer| answer.succeeded(outcome)).count();
    let (ran, joined, replayed) = (of("ran"), of("joined"), of("replayed"));
    let charge = answers.iter().find_map(RunAnswer::charge).unwrap_or_default();
    let same = answers.iter().filter(|answer| answer.charge().as_ref() == Some(&charge)).count();
    let what = format!("{ran} ran, {joined} joined, {replayed} replayed");
    stage.gets(format_args!("{} answers: {}; {same} of them say {charge}", answers.len(), what.green()))?;
    act.must(ran == 1 && ran + joined + replayed == CALLERS && same == CALLERS, || {
        format!("of {CALLERS} callers {what}, and {same} were told {charge}")
    });
    stage.count(world, &mut act, "1004", 1, CountMeaning::Good("paid once"))?;
    Ok(act)
}

fn on_purpose(stage: &Narrator, world: &DemoWorld, number: usize) -> anyhow::Result<Act> {
    let mut act = Act::new("on purpose", "a repeat with a reason ran, once; another order ran");
    stage.title(number, &act)?;
    let pay = world.pay(&["charge", "1005", AMOUNT, "Order 1005"]);
    let again = ["--again", "second shipment"];
    stage.does(r#"semel run -- pay charge 1005 4900 "Order 1005""#)?;
    let first = world.run(Rules::Payments, &[], &pay)?;
    stage.answered(&first)?;
    act.must(first.succeeded("ran"), || told("the caller", &first));
    stage.does(r#"semel run --again "second shipment" -- pay charge 1005 4900 "Order 1005""#)?;
    let second = world.run(Rules::Payments, &again, &pay)?;
    stage.answered(&second)?;
    act.must(second.succeeded("ran"), || told("the deliberate repeat", &second));
    stage.count(world, &mut act, "1005", 2, CountMeaning::Good("as asked"))?;
    stage.does("the same again, with the same reason")?;
    let third = world.run(Rules::Payments, &again, &pay)?;
    stage.answered(&third)?;
    expect_same(&mut act, "the retried repeat", &second, &third);
    stage.count(world, &mut act, "1005", 2, CountMeaning::Good("still two"))?;
    stage.does(r#"semel run -- pay charge 1006 4900 "Order 1006""#)?;
    let other = world.run(Rules::Payments, &[], &world.pay(&["charge", "1006", AMOUNT, "Order 1006"]))?;
    stage.answered(&other)?;
    act.must(other.succeeded("ran"), || told("the other order", &other));
    stage.count(world, &mut act, "1006", 1, CountMeaning::Good("another order is another payment"))?;
    Ok(act)
}

fn unprovable(stage: &Narrator, world: &DemoWorld, number: usize) -> anyhow::Result<Act> {
    let mut act = Act::new("no way to prove it", "held until a person had looked, and never run again");
    stage.title(number, &act)?;
    world.kill_next_charge("1007")?;
    let pay = world.pay(&["charge", "1007", AMOUNT, "Order 1007"]);
    stage.does(r#"semel run -- pay charge 1007 4900 "Order 1007"     (no probe)"#)?;
    let first = world.run(Rules::Payments, &[], &pay)?;
    stage.answered(&first)?;
    act.must(first.held(), || told("the caller", &first));
    stage.does("the same again")?;
    let second = world.run(Rules::Payments, &[], &pay)?;
    stage.answered(&second)?;
    act.must(second.held() && second.text("outcome") == "held", || told("the retry", &second));
    stage.count(
        world,
        &mut act,
        "1007",
        1,
        CountMeaning::Good("not tried again, and not passed off as done"),
    )?;
    let effect = first.body["effect_id"].as_str().context("the doubt has no effect id")?;
    stage.does(format_args!(r#"semel ledger resolve {effect} --applied --reason "seen in the book""#))?;
    let resolved = world.rule(&["ledger", "resolve", effect, "--applied", "--reason", "seen in the book"])?;
    let said = String::from_utf8_lossy(&resolved.stderr);
    stage.gets(if resolved.status.success() {
        "exit 0: a person has ruled (here by an operator token)"
    } else {
        said.trim()
    })?;
    act.must(resolved.status.success(), || format!("the ruling failed: {}", said.trim()));
    stage.does("the same again")?;
    let third = world.run(Rules::Payments, &[], &pay)?;
    stage.answered(&third)?;
    act.must(third.succeeded("replayed"), || told("the call after the ruling", &third));
    stage.count(world, &mut act, "1007", 1, CountMeaning::Good("paid once"))?;
    Ok(act)
}

fn expect_same(act: &mut Act, who: &str, first: &RunAnswer, later: &RunAnswer) {
    let same = later.body["effect_id"] == first.body["effect_id"] && later.charge() == first.charge();
    act.must(later.succeeded("replayed") && same && later.charge().is_some(), || told(who, later));
}

/// Claims that should not have been made.
fn told(who: &str, answer: &RunAnswer) -> String {
    let code = answer.code.map_or_else(|| "a signal".to_owned(), |code| format!("exit {code}"));
    let words =
        [answer.text("outcome"), answer.text("code"), answer.text("what_happened"), answer.text("reason")];
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    format!("{who} was answered with {code} ({})", words.join(", "))
}
