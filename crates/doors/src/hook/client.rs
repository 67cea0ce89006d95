//! The clients whose hooks semel knows, and what each of them calls things.

/// A coding agent's client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Client {
    ClaudeCode,
    Codex,
    Gemini,
    OpenCode,
    Qwen,
}

impl Client {
    pub const ALL: [Client; 5] =
        [Client::ClaudeCode, Client::Codex, Client::Gemini, Client::OpenCode, Client::Qwen];

    /// Before a session's id it makes the name of a run.
    pub fn word(self) -> &'static str {
        match self {
            Client::ClaudeCode => "claude",
            Client::Codex => "codex",
            Client::Gemini => "gemini",
            Client::OpenCode => "opencode",
            Client::Qwen => "qwen",
        }
    }

    /// Whether a tool of this name runs a line of shell.
    pub fn is_shell(self, tool: &str) -> bool {
        match self {
            Client::ClaudeCode => matches!(tool, "Bash" | "Monitor"),
            Client::Codex => matches!(tool, "Bash" | "shell" | "exec_command"),
            Client::Gemini | Client::Qwen => tool == "run_shell_command",
            Client::OpenCode => tool == "bash",
        }
    }

    /// Whether the output of a tool can be replaced by the recorded one.
    pub fn shows_records(self) -> bool {
        self == Client::ClaudeCode
    }

    /// How much of a list its model gets whole. Claude Code keeps 9,900 characters, Codex 2,500 tokens.
    pub fn context_characters_max(self) -> usize {
        match self {
            Client::Codex => 7_000,
            _ => 9_000,
        }
    }
}
