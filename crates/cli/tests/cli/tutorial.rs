//! `docs/tutorial.md` runs from top to bottom, in one home.

use crate::home::Home;
use std::path::Path;

struct Step {
    command: String,
    output: Vec<String>,
}

fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for block in text.split("```console\n").skip(1) {
        for line in block.split("```").next().unwrap_or_default().lines() {
            match (line.strip_prefix("$ "), steps.last_mut()) {
                (Some(command), _) => steps.push(Step { command: command.to_owned(), output: Vec::new() }),
                (None, Some(step)) => step.output.push(line.to_owned()),
                (None, None) => panic!("a command comes first: {line}"),
            }
        }
    }
    steps
}

#[test]
fn the_tutorial_runs_from_top_to_bottom() {
    let text = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tutorial.md");
    let text = std::fs::read_to_string(text).expect("the tutorial is there");
    let home = Home::new();
    let semel = Path::new(env!("CARGO_BIN_EXE_semel")).parent().expect("a directory").display().to_string();
    let steps = steps(&text);
    assert!(steps.len() >= 12, "the tutorial shows commands");
    for Step { command, output } in steps {
        let mut shell = home.program(&["sh".to_owned(), "-c".to_owned(), command.clone()]);
        shell.env("PATH", format!("{semel}:/usr/local/bin:/usr/bin:/bin"));
        let ran = shell.output().expect("a shell starts");
        let stdout = String::from_utf8_lossy(&ran.stdout).into_owned();
        // A page is shown by its first line.
        let shown: Vec<&str> =
            stdout.lines().take(if command.contains("explain") { 1 } else { 99 }).collect();
        assert_eq!(shown, output, "{command}: {}", String::from_utf8_lossy(&ran.stderr));
    }
}
