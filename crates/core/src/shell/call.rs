//! The call behind a simple command: without wrappers and assignments, its verb where rules look for it.

use super::reader::read;
use super::request::request;
use super::{Command, Input, Place, Word};
use crate::json::Json;

/// A call that a command line makes, by the name and with the arguments that rules know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellCall {
    /// `cli:PROGRAM`, or `http:METHOD HOST/PATH`.
    pub action: String,
    /// `argv` of a command; `path`, `query` and `body` of a request.
    pub arguments: Json,
}

/// The calls that a line makes if its commands succeed. Those that only another's failure or a condition brings about are
/// left out, for nothing tells whether they ran.
pub fn calls(line: &str) -> Vec<ShellCall> {
    let mut found = Vec::new();
    collect(read(line).commands, 0, &mut found);
    found
}

/// The same of an argument list, as a program gets it.
pub fn calls_of_argv(argv: &[String]) -> Vec<ShellCall> {
    let words = argv.iter().map(|text| Word { text: text.clone(), is_known: true }).collect();
    let place = Place { pipeline: 0..0, is_last: true, is_nested: false, is_conditional: false };
    let mut found = Vec::new();
    collect(vec![Command { words, input: Input::None, place }], 0, &mut found);
    found
}

fn collect(commands: Vec<Command>, depth: usize, found: &mut Vec<ShellCall>) {
    for command in commands.into_iter().filter(|command| !command.place.is_conditional) {
        match Behind::of(command) {
            Behind::Script { script, .. } if depth < SCRIPTS_MAX => {
                collect(read(&script.text).commands, depth + 1, found);
            }
            Behind::Script { .. } | Behind::Nothing { .. } => {}
            Behind::Call(call) => found.push(match request(&call.words, &call.input) {
                Some(request) => {
                    ShellCall { action: request.action, arguments: Json::Object(request.arguments) }
                }
                None => ShellCall { action: call.action(), arguments: Json::object([("argv", call.argv())]) },
            }),
        }
    }
}

/// Scripts within scripts: `sudo bash -c "bash -c '…'"`. Each level is read again.
pub(super) const SCRIPTS_MAX: usize = 4;

/// The words behind the wrappers of a command.
#[derive(Debug)]
pub(super) enum Behind {
    /// Assignments alone.
    Nothing {
        variables: Vec<Word>,
    },
    /// A shell runs these lines.
    Script {
        script: Word,
        variables: Vec<Word>,
    },
    Call(Call),
}

#[derive(Debug)]
pub(super) struct Call {
    pub words: Vec<Word>,
    pub input: Input,
    /// The assignments before it: `NAME=value`.
    pub variables: Vec<Word>,
}

/// Programs that run the command behind them: the letters of their options with a value, and how many words stand before
/// the command.
const RUNNERS: [(&str, &str, usize); 12] = [
    ("sudo", "CDghpRrTtUu", 0),
    ("timeout", "ks", 1),
    ("env", "CSu", 0),
    ("nice", "n", 0),
    ("stdbuf", "eio", 0),
    ("time", "fo", 0),
    ("nohup", "", 0),
    ("exec", "a", 0),
    ("command", "", 0),
    ("npx", "p", 0),
    ("bunx", "", 0),
    ("uvx", "", 0),
];

const SHELLS: [&str; 5] = ["sh", "bash", "zsh", "dash", "ksh"];

/// Options with a value that stand between a program and its verb. Rules know the verb as the first word.
const BEFORE_VERB: [(&str, &str); 13] = [
    ("git", "-C -c --git-dir --work-tree --namespace"),
    ("gh", "-R --repo"),
    ("kubectl", "-n --namespace --context --cluster --kubeconfig --user -s --server --as --token"),
    ("helm", "-n --namespace --kube-context --kubeconfig"),
    ("aws", "--profile --region --output --endpoint-url --query"),
    ("gcloud", "--project --account --configuration --format"),
    ("docker", "-H --host -c --context --config -l"),
    ("npm", "--prefix -C -w --workspace --registry"),
    ("pnpm", "-C --dir -F --filter"),
    ("yarn", "--cwd"),
    ("cargo", "--config -C -Z --color"),
    ("terraform", ""),
    ("tofu", ""),
];

impl Behind {
    pub fn of(command: Command) -> Behind {
        let Command { mut words, input, .. } = command;
        let (behind, variables) = without_runners(&words);
        words.drain(..behind);
        match words.as_slice() {
            [] => Behind::Nothing { variables },
            [program, rest @ ..] if SHELLS.contains(&program.program()) => {
                let is_option = |word: &&Word| word.text.starts_with('-') || word.text == "pipefail";
                let mut options = rest.iter().take_while(is_option);
                let flag = options.position(|word| word.text.starts_with('-') && word.text.ends_with('c'));
                match (flag, input) {
                    (Some(flag), _) if flag + 1 < rest.len() => {
                        Behind::Script { script: rest[flag + 1].clone(), variables }
                    }
                    (None, Input::Text(text)) if rest.iter().all(|word| word.text.starts_with('-')) => {
                        Behind::Script { script: Word { text, is_known: true }, variables }
                    }
                    (_, input) => Behind::Call(Call { words, input, variables }),
                }
            }
            _ => {
                set_verb_first(&mut words);
                Behind::Call(Call { words, input, variables })
            }
        }
    }
}

impl Call {
    pub fn program(&self) -> &str {
        self.words[0].program()
    }

    pub fn action(&self) -> String {
        format!("cli:{}", self.program())
    }

    /// Whether its words are all known.
    pub fn is_known(&self) -> bool {
        self.words.iter().all(|word| word.is_known)
    }

    pub fn argv(&self) -> Json {
        Json::Array(self.words.iter().map(|word| Json::str(&word.text)).collect())
    }
}

impl Word {
    /// Its program's name: without the directory, and without the version that `npx` takes.
    pub fn program(&self) -> &str {
        let name = self.text.rsplit('/').next().unwrap_or_default();
        name.split_once('@').map_or(name, |(name, _)| name)
    }

    /// The name that it assigns to, if it is `NAME=value`.
    pub fn variable(&self) -> Option<&str> {
        let (name, _) = self.text.split_once('=')?;
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        is_name.then_some(name)
    }
}

/// How many words stand before the command itself, and the assignments among them.
fn without_runners(words: &[Word]) -> (usize, Vec<Word>) {
    let (mut at, mut variables) = (0, Vec::new());
    while let Some(first) = words.get(at) {
        if first.variable().is_some() {
            variables.push(first.clone());
            at += 1;
            continue;
        }
        let Some((_, with_value, before)) = RUNNERS.iter().find(|(name, ..)| *name == first.program()) else {
            break;
        };
        at += 1;
        while let Some(letters) = words.get(at).and_then(|word| word.text.strip_prefix('-')) {
            let has_value = letters.len() == 1 && with_value.contains(letters);
            at += if has_value { 2 } else { 1 };
        }
        at += before;
    }
    (at.min(words.len()), variables)
}

/// `git -C d push` is read as `git push -C d`.
fn set_verb_first(words: &mut Vec<Word>) {
    let Some((_, with_value)) = BEFORE_VERB.iter().find(|(name, _)| *name == words[0].program()) else {
        return;
    };
    let mut verb = 1;
    while let Some(word) = words.get(verb).filter(|word| word.text.starts_with(['-', '+'])) {
        verb += if with_value.split(' ').any(|option| option == word.text) { 2 } else { 1 };
    }
    if verb < words.len() {
        let options: Vec<Word> = words.drain(1..verb).collect();
        // Behind `--` they would be another program's.
        let end = words.iter().position(|word| word.text == "--").unwrap_or(words.len());
        words.splice(end..end, options);
    }
}
