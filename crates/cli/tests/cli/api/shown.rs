//! The requests and the program that `docs/api.md` shows, and the request of `docs/operate.md`.

use super::client::token;
use crate::home::{Home, Ran};
use crate::serve::served::Served;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

fn document(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    std::fs::read_to_string(path).expect("the document is there")
}

/// Blocks of a language.
fn blocks<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    let begin = format!("```{language}\n");
    text.split(begin.as_str()).skip(1).filter_map(|block| block.split("```").next()).collect()
}

/// Whether a line is as it is shown; `…` stands for anything.
fn fits(line: &str, shown: &str) -> bool {
    let line = line.trim_end_matches('\r');
    let Some((first, others)) = shown.split_once('…') else { return line == shown };
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    let (between, last) = others.rsplit_once('…').map_or(("", others), |(between, last)| (between, last));
    for part in between.split('…').filter(|part| !part.is_empty()) {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Whoever asks as the document does.
struct Reader {
    home: Home,
    served: Served,
    agent: String,
    operator: String,
    claim: String,
    effect: String,
}

impl Reader {
    fn new() -> Reader {
        let home = Home::new();
        let served = Served::start(&home, "[defaults]\nwait = \"0s\"\n");
        let (agent, operator) = (token(&home, "agent", "local", "a"), token(&home, "operator", "local", "o"));
        Reader { home, served, agent, operator, claim: String::new(), effect: String::new() }
    }

    /// Makes a shown request. The last claim and effect that were told are those that the next one means.
    fn ask(&mut self, command: &str) -> String {
        let command = command.replace("$TOKEN", &self.agent).replace("$OPERATOR", &self.operator);
        let command = command.replace("CLAIM", &self.claim).replace("EFFECT", &self.effect);
        let words = shlex::split(&command.replace("127.0.0.1:7777", &self.served.address)).expect("quotes");
        assert_eq!(words[0], "curl");
        let output = Command::new("curl").args(&words[1..]).output().expect("curl is there");
        let output = String::from_utf8(output.stdout).expect("text");
        let told: Value = serde_json::from_str(&output).unwrap_or_default();
        for (name, kept) in [("claim", &mut self.claim), ("effect_id", &mut self.effect)] {
            if let Some(text) = told[name].as_str() {
                *kept = text.to_owned();
            }
        }
        output
    }
}

#[test]
fn every_request_that_the_documents_show_does_what_they_say() {
    for (name, least) in [("api.md", 12), ("operate.md", 1)] {
        let (mut reader, mut asked, mut output) = (Reader::new(), 0, String::new());
        for line in blocks(&document(name), "console").iter().flat_map(|block| block.lines()) {
            match line.strip_prefix("$ ") {
                Some(command) => {
                    output = reader.ask(command);
                    asked += 1;
                }
                None => assert!(output.lines().any(|given| fits(given, line)), "{name}: {line}\n{output}"),
            }
        }
        assert!(asked >= least, "{name} shows requests; only {asked} were found");
    }
}

#[test]
fn the_program_that_the_document_shows_calls_its_tool_once() {
    let reader = Reader::new();
    let text = document("api.md");
    let [program] = blocks(&text, "python")[..] else { panic!("the document shows one program") };
    let file = reader.home.file("once.py", program);
    let run = || {
        let words = ["python3".to_owned(), file.to_string_lossy().into_owned()];
        let mut command = reader.home.program(&words);
        command.env("SEMEL_API", format!("http://{}/api/v1", reader.served.address));
        let ran = Ran::of(command.env("SEMEL_TOKEN", &reader.agent).output().expect("python starts"));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        (ran.stdout.matches("charging ann").count(), ran.stdout.matches("{'id': 'ch_1'}").count())
    };
    assert_eq!((run(), run()), ((1, 2), (0, 2)));
}

#[test]
fn a_shown_line_fits_what_it_stands_for_and_nothing_else() {
    assert!(fits("a b c", "a b c") && fits("a b c\r", "a … c") && fits("abc", "a…") && fits("abc", "…b…"));
    assert!(!fits("a b c", "a b") && !fits("a b c", "…b") && !fits("a c", "a … c"));
}
