//! Keeps notes, a line each. An agent may repeat each command.
use clap::Parser;
use semel::command::{ChangeArgs, DoneWord, SAFE, answer};
use serde_json::json;
use std::{fs, io::Write, process::ExitCode};

#[derive(Parser)]
enum Notes {
    /// Write a note down.
    Add {
        text: String,
        #[command(flatten)]
        change: ChangeArgs,
    },
    /// Notes, in their order.
    #[command(after_help = SAFE)]
    All,
}

fn main() -> ExitCode {
    match Notes::parse() {
        Notes::Add { text, change } => {
            let added = change.run(DoneWord::Created, "notes-add", json!({"text": text}), |effect| {
                let file = fs::File::options().create(true).append(true).open("notes.txt");
                let mut file = file.inspect_err(|_| effect.refused())?; // nothing was written
                writeln!(file, "{text}").map(|()| json!({"text": text}))
            });
            answer(added, true)
        }
        Notes::All => {
            let notes = fs::read("notes.txt").unwrap_or_default();
            std::io::stdout().write_all(&notes).map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS)
        }
    }
}
