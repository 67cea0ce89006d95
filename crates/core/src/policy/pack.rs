//! Packs: rules that ship with semel, for services and programs that many people use.

use super::Policy;
use super::compile::{self, Choices, RuleEntry};
use super::diagnostic::{DiagnosticCode, Diagnostics, SourceText};
use super::file::{PackServerTable, Spot};
use super::nearest::nearest;
use super::read;
use super::rule::RuleOrigin;
use super::upstreams::Preset;
use crate::class::Class;
use std::path::Path;

#[derive(Debug)]
pub struct Pack {
    pub name: &'static str,
    /// The file's name, for findings; a pack with findings does not pass the tests.
    pub path: &'static str,
    pub text: &'static str,
}

macro_rules! packs {
    ($($name:literal),*) => {
        &[$(Pack {
            name: $name,
            path: concat!("pack:", $name),
            text: include_str!(concat!("../../../../packs/", $name, ".toml")),
        }),*]
    };
}

/// An API belongs to the first one that knows its host, so a cluster that AWS runs comes before AWS.
pub const PACKS: &[Pack] = packs![
    "adyen",
    "anthropic",
    "kubernetes",
    "aws",
    "checkout",
    "discord",
    "filesystem",
    "gh",
    "git",
    "github",
    "google",
    "jira",
    "kubectl",
    "linear",
    "mercadopago",
    "mollie",
    "msgraph",
    "notion",
    "openai",
    "paypal",
    "plaid",
    "playwright",
    "postgres",
    "postmark",
    "razorpay",
    "resend",
    "sendgrid",
    "shell",
    "shopify",
    "slack",
    "square",
    "stripe",
    "twilio",
    "zendesk"
];

/// Where a pack says what it knows about an HTTP API and about MCP servers, and where its rules begin.
const PRESET: &str = "\n[preset]\n";
const SERVER: &str = "\n[server]\n";
const RULES: &str = "\n[[rule]]\n";

impl Pack {
    /// Its knowledge of an HTTP API. Only that part is read: a server with one API needs one of the packs.
    pub fn preset(&self) -> Option<Preset> {
        let source = self.part(PRESET)?;
        // The tests see to it that a pack has no findings.
        let mut found = Diagnostics::default();
        let read::ParsedFile { file, .. } = read::read(source, &mut found);
        Some(compile::preset(source, &file.preset?.value, &mut found))
    }

    /// The MCP servers that it has rules for.
    pub fn server(&self) -> Option<PackServerTable> {
        let read::ParsedFile { file, .. } = read::read(self.part(SERVER)?, &mut Diagnostics::default());
        Some(file.server?.value)
    }

    /// From a header up to the rules.
    fn part(&self, header: &str) -> Option<SourceText<'static>> {
        let part = &self.text[self.text.find(header)?..];
        let text = &part[..part.find(RULES).unwrap_or(part.len())];
        Some(SourceText { path: Path::new(self.path), text })
    }

    pub(super) fn rules(&self, defaults: &Choices, found: &mut Diagnostics) -> Vec<RuleEntry> {
        let source = SourceText { path: Path::new(self.path), text: self.text };
        let read::ParsedFile { file, whole } = read::read(source, found);
        let rules = file.rule.iter().filter_map(|table| {
            let line = source.line_of(table.span.start);
            let origin = RuleOrigin::Pack { name: self.name.to_owned(), line };
            compile::rule(compile::Input { source, whole }, origin, table, defaults, found)
        });
        rules.collect()
    }
}

impl Policy {
    /// The same for commands that are typed into a shell: `pack:shell` comes last. Other packs say that a program's
    /// commands are *act* where no other rule of theirs is about them, which is said of any command: here such a rule
    /// would guard `git add`.
    #[must_use]
    pub fn for_shell(mut self) -> Policy {
        self.rules.retain(|entry| !entry.is_default_of_program());
        let is_included = self
            .rules
            .iter()
            .any(|entry| matches!(&entry.rule.origin, RuleOrigin::Pack { name, .. } if name == "shell"));
        if let Some(pack) = named("shell").filter(|_| !is_included) {
            // The tests see to it that a pack has no findings.
            self.rules.extend(pack.rules(&self.defaults, &mut Diagnostics::default()));
        }
        self
    }
}

impl RuleEntry {
    /// Whether a pack says by it no more than that a whole program is *act*.
    fn is_default_of_program(&self) -> bool {
        let is_of_pack = matches!(self.rule.origin, RuleOrigin::Pack { .. });
        let text = self.pattern.text();
        is_of_pack && self.class == Some(Class::Act) && text.starts_with("cli:") && !text.contains(' ')
    }
}

pub(super) fn named(name: &str) -> Option<&'static Pack> {
    PACKS.iter().find(|pack| pack.name == name)
}

/// The pack that an `include` entry names.
pub(super) fn find(
    source: SourceText<'_>,
    include: &Spot<String>,
    found: &mut Diagnostics,
) -> Option<&'static Pack> {
    let name = include.value.strip_prefix("pack:");
    if let Some(pack) = PACKS.iter().find(|pack| name == Some(pack.name)) {
        return Some(pack);
    }
    let names = PACKS.iter().map(|pack| pack.name);
    let help = match nearest(name.unwrap_or(&include.value), names.clone()) {
        Some(near) => format!("did you mean `pack:{near}`?"),
        None => {
            let mut all: Vec<String> = names.map(|name| format!("pack:{name}")).collect();
            all.sort_unstable();
            format!("there are: {}", all.join(", "))
        }
    };
    let message = format!("there is no pack {:?}", include.value);
    found.error(source, include.span.clone(), DiagnosticCode::UnknownPack, message, help);
    None
}
