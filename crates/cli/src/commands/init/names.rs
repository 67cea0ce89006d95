//! The names under which servers are guarded. The ledger knows a server by its name alone, so two commands never share
//! one, whatever their clients call them.

use crate::commands::mcp::name;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A server, as far as the ledger tells it from others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerCommand {
    /// The words behind semel's own, or the address.
    pub words: Vec<String>,
    /// Where the words mean it. `None`: everywhere.
    pub directory: Option<PathBuf>,
}

impl ServerCommand {
    fn may_be(&self, other: &ServerCommand) -> bool {
        let anywhere = self.directory.is_none() || other.directory.is_none();
        self.words == other.words && (anywhere || self.directory == other.directory)
    }
}

/// The names that are taken, and by what.
#[derive(Debug, Default)]
pub struct Names(BTreeMap<String, Vec<ServerCommand>>);

impl Names {
    pub fn take(&mut self, name: String, command: ServerCommand) {
        self.0.entry(name).or_default().push(command);
    }

    /// The nearest name to that in the file which no other command has; it is taken then.
    pub fn choose(&mut self, server: &str, command: ServerCommand) -> String {
        let is_free = |name: &String| {
            self.0.get(name).is_none_or(|taken| taken.iter().all(|known| known.may_be(&command)))
        };
        let mut names = (1..).map(|number| name::numbered(server, number));
        let name = names.find(is_free).expect("there are more numbers than servers");
        self.take(name.clone(), command);
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_commands_never_get_one_name_and_one_command_keeps_its_own() {
        let command = |words: &str, directory: Option<&str>| ServerCommand {
            words: words.split(' ').map(str::to_owned).collect(),
            directory: directory.map(PathBuf::from),
        };
        let mut names = Names::default();
        names.take("bank".to_owned(), command("./bank", None));
        for (server, of, name) in [
            ("a/b", command("npx x", None), "a-b"),
            ("a-b", command("npx y", None), "a-b-2"),
            ("a b", command("npx y", None), "a b"),
            ("a-b", command("npx x", Some("/p")), "a-b"),
            ("db", command("./db", Some("/p")), "db"),
            ("db", command("./db", Some("/q")), "db-2"),
            ("bank", command("./other", None), "bank-2"),
            ("bank", command("./bank", Some("/p")), "bank"),
        ] {
            assert_eq!(names.choose(server, of), name, "{server}");
        }
        let long = "x".repeat(300);
        assert_ne!(names.choose(&long, command("a", None)), names.choose(&long, command("b", None)));
    }
}
