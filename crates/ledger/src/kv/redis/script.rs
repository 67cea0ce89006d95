//! A batch as the arguments of the one script.

use crate::kv::engine::{Batch, Template, Version, Write};
use redis::{Cmd, Script};

pub(super) const APPLY: &str = include_str!("apply.lua");

/// Known to the server by its hash.
pub(super) struct ApplyScript(Script);

impl ApplyScript {
    pub(super) fn new() -> ApplyScript {
        ApplyScript(Script::new(APPLY))
    }

    pub(super) fn command(&self, keys: &[String; 3], batch: Batch<'_>) -> Cmd {
        let mut command = redis::cmd("EVALSHA");
        command.arg(self.0.get_hash()).arg(keys.len()).arg(keys);
        let news: Vec<String> = batch.moved.iter().map(|key| format!("{key:016x}")).collect();
        command.arg(batch.lineage).arg(news.join(" ")).arg(batch.groups.len());
        for group in batch.groups {
            command.arg(group.compares.len()).arg(group.writes.len()).arg(group.numbers);
            for (name, version) in &group.compares {
                command.arg(name).arg(version_bytes(*version));
            }
            for write in &group.writes {
                match write {
                    Write::Put { name, value } => template(&mut command, "put", Some(name), value),
                    Write::Enter(entry) => template(&mut command, "enter", None, entry),
                    Write::Delete { name } => _ = command.arg("delete").arg(name),
                    Write::Leave(entry) => _ = command.arg("leave").arg(entry),
                }
            }
        }
        command
    }
}

fn version_bytes(version: Version) -> Vec<u8> {
    if version == Version::ABSENT { Vec::new() } else { version.0.to_be_bytes().to_vec() }
}

fn template(command: &mut Cmd, kind: &str, name: Option<&Vec<u8>>, template: &Template) {
    match template.number {
        None => command.arg(kind).arg(name).arg(&template.before),
        Some(number) => {
            let how = if template.is_inverted { "inverted" } else { "numbered" };
            let command = command.arg(format!("{kind} {how}")).arg(name);
            command.arg(&template.before).arg(number).arg(&template.after)
        }
    };
}
