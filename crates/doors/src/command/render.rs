//! A command as rules see its answer, and the word for its effect.

use semel_core::answer::EffectWord;
use semel_core::json::Json;

/// A command's reply, as rules see it: its output as JSON, else an object with the output as `text`.
pub fn reply(stdout: &[u8]) -> Json {
    let stdout = stdout.trim_ascii();
    semel_core::json::parse_bytes(stdout)
        .unwrap_or_else(|_| Json::object([("text", Json::str(&String::from_utf8_lossy(stdout)))]))
}

/// The door's own table: what a command with this verb does to the world.
pub fn word_by_verb(argv: &[String]) -> EffectWord {
    let verbs = argv.iter().take(4).map(|word| word.rsplit('/').next().unwrap_or(word));
    for verb in verbs {
        match verb {
            "create" | "add" | "new" | "mkdir" | "touch" | "init" => return EffectWord::Created,
            "delete" | "rm" | "remove" | "destroy" | "rmdir" | "uninstall" => return EffectWord::Deleted,
            "send" | "mail" | "sendmail" | "notify" | "publish" => return EffectWord::Sent,
            _ => {}
        }
    }
    EffectWord::Updated
}
