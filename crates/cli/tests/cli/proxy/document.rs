//! The requests that `docs/http.md` shows, made with curl.

use crate::home::Home;
use crate::serve::served::{Served, TOKEN};
use semel_testkit::http::ScriptedApi;
use std::path::Path;
use std::process::Command;

/// A shown request, and lines of what comes back; `…` stands for anything.
struct Shown {
    command: String,
    lines: Vec<String>,
}

fn shown() -> Vec<Shown> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/http.md");
    let text = std::fs::read_to_string(path).expect("the document is there");
    let mut all: Vec<Shown> = Vec::new();
    for block in text.split("```console\n").skip(1) {
        for line in block.split("```").next().unwrap_or_default().lines() {
            match (line.strip_prefix("$ "), all.last_mut()) {
                (Some(command), _) => all.push(Shown { command: command.to_owned(), lines: Vec::new() }),
                (None, Some(last)) => last.lines.push(line.to_owned()),
                (None, None) => panic!("a command comes first: {line}"),
            }
        }
    }
    all
}

fn fits(line: &str, shown: &str) -> bool {
    let line = line.trim_end_matches('\r');
    match shown.split_once('…') {
        Some((before, after)) => line.starts_with(before) && line.ends_with(after),
        None => line.eq_ignore_ascii_case(shown),
    }
}

#[test]
fn every_request_that_the_document_shows_does_what_it_says() {
    let (home, api) = (Home::new(), ScriptedApi::start());
    let policy = format!("[upstream.bank]\nurl = \"{}\"\nservice = \"bank.example.com\"\n", api.url());
    let served = Served::start(&home, &policy);
    let all = shown();
    assert!(all.len() >= 5, "the document shows requests");
    for Shown { command, lines } in all {
        let command = command.replace("$TOKEN", TOKEN).replace("127.0.0.1:7777", &served.address);
        let words = shlex::split(&command).expect("its quotes match");
        assert_eq!(words[0], "curl");
        let output = Command::new("curl").args(&words[1..]).output().expect("curl is there");
        let output = String::from_utf8(output.stdout).expect("text");
        for shown in lines {
            assert!(output.lines().any(|line| fits(line, &shown)), "{command}: {shown}: {output}");
        }
    }
    assert_eq!(api.effects(), 1);
}
