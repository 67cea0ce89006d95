//! `semel ledger undo`, judged by what happened in the world: each charge and each refund is a line, or a request.

mod answers;
mod api;
mod crashes;
mod links;
mod ways;

use crate::home::{Home, Ran};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// A home in which charges can be made and taken back by commands.
#[derive(Debug)]
pub struct Till {
    pub home: Home,
}

const RULE: &str = "[[rule]]\nmatch = \"cli:charge.sh *\"\nclass = \"consequential\"\n";

impl Till {
    pub fn new() -> Till {
        Till::with("[rule.undo]\ncmd = [\"./refund.sh\", \"{reply.id}\"]\n")
    }

    /// The same with another undo, and whatever comes after it.
    pub fn with(undo: &str) -> Till {
        let home = Home::new();
        script(&home, "charge.sh", "echo \"$1\" >> charges; echo \"{\\\"id\\\": \\\"ch_$1\\\"}\"");
        script(&home, "refund.sh", "echo \"$1\" >> refunds; echo \"refunded $1\"");
        home.file("semel.toml", &format!("{RULE}{undo}"));
        Till { home }
    }

    /// A charge that was made. Returns the effect's id.
    pub fn charged(&self, order: &str) -> String {
        let ran = self.charge(&[], order);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        id(&ran.json())
    }

    pub fn charge(&self, flags: &[&str], order: &str) -> Ran {
        let args = [&["--json", "run"], flags, &["--", "./charge.sh", order]].concat();
        self.home.semel(args)
    }

    pub fn undo(&self, effect: &str) -> Ran {
        self.home.semel(["--json", "ledger", "undo", effect, "--reason", "wrong order"])
    }

    pub fn show(&self, effect: &str) -> Value {
        self.home.json(["ledger", "show", effect])
    }

    pub fn charges(&self) -> usize {
        self.home.lines("charges")
    }

    pub fn refunds(&self) -> usize {
        self.home.lines("refunds")
    }
}

pub fn script(home: &Home, name: &str, text: &str) {
    let path = home.file(name, &format!("#!/bin/sh\n{text}\n"));
    executable(&path);
}

fn executable(path: &Path) {
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(path, mode).expect("a script is executable");
}

pub fn id(answer: &Value) -> String {
    answer["effect_id"].as_str().unwrap_or_else(|| panic!("no effect: {answer}")).to_owned()
}
