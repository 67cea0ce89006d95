//! A home with clients in it: what their files say, before and after.

use crate::home::{Home, Ran};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// This semel, as the generated configurations name it.
pub const SEMEL: &str = env!("CARGO_BIN_EXE_semel");

/// A text that must never be printed.
pub const SECRET: &str = "hunter2";

#[derive(Debug)]
pub struct Scene {
    pub home: Home,
}

impl Scene {
    /// A home whose search path holds a few launchers, and a project that is a repository.
    pub fn new() -> Scene {
        let home = Home::new();
        fs::create_dir(home.path().join("bin")).expect("a directory");
        for launcher in ["npx", "uvx", "docker"] {
            let path = home.path().join("bin").join(launcher);
            fs::write(&path, "#!/bin/sh\n").expect("a script");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is executable");
        }
        fs::create_dir(home.work().join(".git")).expect("a repository");
        Scene { home }
    }

    /// A file below the home, which only its owner may read.
    pub fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.home.path().join(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("directories");
        fs::write(&path, content).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("its mode");
        path
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.home.path().join(name)).expect("a file")
    }

    /// Where the first backup of a file below the home is kept.
    pub fn backup(&self, name: &str) -> PathBuf {
        let home = self.home.path().canonicalize().expect("a home");
        let below_root = home.strip_prefix("/").expect("a whole path").join(format!("{name}.semel-backup"));
        self.home.state().join("init-backups").join(below_root)
    }

    pub fn init<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Ran {
        let mut command = self.home.command(["init"]);
        command.args(args).env("PATH", self.home.path().join("bin"));
        Ran::of(command.output().expect("semel starts"))
    }

    /// A call that must succeed.
    pub fn done<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Ran {
        let ran = self.init(args);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran
    }

    /// With the paths of this scene filled in.
    pub fn fill_in(&self, text: &str) -> String {
        let home = self.home.path().to_str().expect("a path of text");
        text.replace("SEMEL", SEMEL).replace("HOME", home).replace("{}_HEADER", "SEMEL_HEADER")
    }
}

/// One client's file before and after `semel init --write`. `SEMEL` is this semel, `HOME` the home.
pub struct Config {
    pub file: &'static str,
    pub before: &'static str,
    pub after: &'static str,
}

pub const CONFIGS: [Config; 8] = [
    Config {
        file: "work/.mcp.json",
        before: r#"{
  "mcpServers": {
    "github": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-github"],
      "env": { "GITHUB_PERSONAL_ACCESS_TOKEN": "${GITHUB_TOKEN}", "OTHER": "hunter2" }
    },
    "billing": {
      "type": "http",
      "url": "${BILLING:-https://billing.example}/mcp",
      "headers": {
        "Authorization": "Bearer hunter2"
      }
    },
    "linear": { "type": "http", "url": "https://mcp.linear.app/mcp" },
    "time": { "command": "uvx", "args": ["mcp-server-time"] }
  }
}
"#,
        after: r#"{
  "mcpServers": {
    "github": {
      "command": "semel",
      "args": ["mcp", "--name", "github", "--", "npx", "-y", "@modelcontextprotocol/server-github"],
      "env": { "GITHUB_PERSONAL_ACCESS_TOKEN": "${GITHUB_TOKEN}", "OTHER": "hunter2" }
    },
    "billing": {
      "type": "stdio",
      "command": "semel",
      "args": ["mcp", "--name", "billing", "--url", "${BILLING:-https://billing.example}/mcp", "--header-env", "Authorization={}_HEADER_1"],
      "env": {
        "{}_HEADER_1": "Bearer hunter2"
      }
    },
    "linear": { "type": "http", "url": "https://mcp.linear.app/mcp" },
    "time": { "command": "semel", "args": ["mcp", "--name", "time", "--", "uvx", "mcp-server-time"] }
  }
}
"#,
    },
    Config {
        file: ".claude.json",
        before: r#"{"numStartups":12345678901234567890,"mcpServers":{"fs":{"type":"stdio","command":"npx","args":["-y","@modelcontextprotocol/server-filesystem","/srv"],"env":{}}},"projects":{"/srv/shop":{"history":[],"mcpServers":{"stripe":{"command":"npx","args":["-y","@stripe/mcp","--api-key=hunter2"]}}}},"ratio":1.50}"#,
        after: r#"{"numStartups":12345678901234567890,"mcpServers":{"fs":{"type":"stdio","command":"SEMEL","args":["mcp", "--name", "fs", "--any-directory", "--", "HOME/bin/npx", "-y","@modelcontextprotocol/server-filesystem","/srv"],"env":{}}},"projects":{"/srv/shop":{"history":[],"mcpServers":{"stripe":{"command":"SEMEL","args":["mcp", "--name", "stripe", "--", "HOME/bin/npx", "-y","@stripe/mcp","--api-key=hunter2"]}}}},"ratio":1.50}"#,
    },
    Config {
        file: ".config/Claude/claude_desktop_config.json",
        before: "{\r\n  \"mcpServers\": {\r\n    \"notes\": {\r\n      \"command\": \"/opt/notes server/run\",\r\n      \"args\": [\r\n        \"--verbose\"\r\n      ]\r\n    }\r\n  },\r\n  \"globalShortcut\": \"\"\r\n}",
        after: "{\r\n  \"mcpServers\": {\r\n    \"notes\": {\r\n      \"command\": \"SEMEL\",\r\n      \"args\": [\r\n        \"mcp\",\r\n        \"--name\",\r\n        \"notes\",\r\n        \"--any-directory\",\r\n        \"--\",\r\n        \"/opt/notes server/run\",\r\n        \"--verbose\"\r\n      ]\r\n    }\r\n  },\r\n  \"globalShortcut\": \"\"\r\n}",
    },
    Config {
        file: "work/.vscode/mcp.json",
        before: r#"{
	// asked for once
	"inputs": [{ "type": "promptString", "id": "key", "password": true }],
	"servers": {
		"playwright": {
			"type": "stdio", // local
			"command": "npx", /* whichever */
			"args": ["@playwright/mcp@latest", "--output-dir=${workspaceFolder}/shots",], // the last one
		},
		/* remote */
		"tickets": {
			"type": "http",
			"url": "https://tickets.example/mcp",
			"headers": {
				"Authorization": "Bearer ${input:key}",
			},
		},
		"local": { "type": "stdio", "command": "${workspaceFolder}/bin/server" },
	},
}
"#,
        after: r#"{
	// asked for once
	"inputs": [{ "type": "promptString", "id": "key", "password": true }],
	"servers": {
		"playwright": {
			"type": "stdio", // local
			"command": "semel", /* whichever */
			"args": ["mcp", "--name", "playwright", "--", "npx", "@playwright/mcp@latest", "--output-dir=${workspaceFolder}/shots",], // the last one
		},
		/* remote */
		"tickets": {
			"type": "stdio",
			"command": "semel",
			"args": ["mcp", "--name", "tickets", "--url", "https://tickets.example/mcp", "--header-env", "Authorization={}_HEADER_1"],
			"env": {
				"{}_HEADER_1": "Bearer ${input:key}",
			},
		},
		"local": {
			"type": "stdio",
			"command": "semel",
			"args": ["mcp", "--name", "local", "--", "${workspaceFolder}/bin/server"]
		},
	},
}
"#,
    },
    Config {
        file: ".cursor/mcp.json",
        before: "{\n  \"mcpServers\": {\n    \"gh\": {\n      \"command\": \"npx\",\n      \"args\": [\"-y\", \"mcp-remote\", \"https://api.githubcopilot.com/mcp/\"],\n      \"env\": {\"TOKEN\": \"${env:TOKEN}\"}\n    }\n  }\n}",
        after: "{\n  \"mcpServers\": {\n    \"gh\": {\n      \"command\": \"SEMEL\",\n      \"args\": [\"mcp\", \"--name\", \"gh\", \"--any-directory\", \"--\", \"HOME/bin/npx\", \"-y\", \"mcp-remote\", \"https://api.githubcopilot.com/mcp/\"],\n      \"env\": {\"TOKEN\": \"${env:TOKEN}\"}\n    }\n  }\n}",
    },
    Config {
        file: ".codeium/windsurf/mcp_config.json",
        before: r#"{
    "mcpServers": {
        "crm": {
            "serverUrl": "https://crm.example/mcp",
            "headers": { "X-Api-Key": "hunter2", "X-Team": "blue" },
            "disabled": false
        }
    }
}
"#,
        after: r#"{
    "mcpServers": {
        "crm": {
            "disabled": false,
            "command": "SEMEL",
            "args": ["mcp", "--name", "crm", "--url", "https://crm.example/mcp", "--header-env", "X-Api-Key={}_HEADER_1", "--header-env", "X-Team={}_HEADER_2"],
            "env": {
                "{}_HEADER_1": "hunter2",
                "{}_HEADER_2": "blue"
            }
        }
    }
}
"#,
    },
    Config {
        file: ".gemini/settings.json",
        before: r#"{
  "theme": "Dracula",
  "mcpServers": {
    "slack": {
      "httpUrl": "https://mcp.slack.com/mcp",
      "headers": {"Authorization": "hunter2"},
      "timeout": 5000
    },
    "db": { "command": "docker", "args": ["run", "-i", "--rm", "-e", "DATABASE_URI", "crystaldba/postgres-mcp"], "trust": false }
  }
}
"#,
        after: r#"{
  "theme": "Dracula",
  "mcpServers": {
    "slack": {
      "timeout": 5000,
      "command": "SEMEL",
      "args": ["mcp", "--name", "slack", "--url", "https://mcp.slack.com/mcp", "--header-env", "Authorization={}_HEADER_1"],
      "env": {
        "{}_HEADER_1": "hunter2"
      }
    },
    "db": { "command": "SEMEL", "args": ["mcp", "--name", "db", "--any-directory", "--", "HOME/bin/docker", "run", "-i", "--rm", "-e", "DATABASE_URI", "crystaldba/postgres-mcp"], "trust": false }
  }
}
"#,
    },
    Config {
        file: ".codex/config.toml",
        before: r#"model = "o3"  # the model

# mail
[mcp_servers.resend]
command = "npx"  # a launcher
args = [
  "-y",
  "resend-mcp",  # the package
]
startup_timeout_sec = 20

[mcp_servers.resend.env]
RESEND_API_KEY = "hunter2"

[mcp_servers.notion]
# where it is
url = "https://mcp.notion.com/mcp"  # remote
http_headers = { "Authorization" = 'Bearer hunter2' }
env_http_headers = { "X-Workspace" = "NOTION_WORKSPACE" }

[mcp_servers.context7]
url = "https://mcp.context7.com/mcp"
http_headers = { CONTEXT7_API_KEY = "hunter2" }

[mcp_servers.figma]
url = "https://mcp.figma.com/mcp"
bearer_token_env_var = "FIGMA_TOKEN"
"#,
        after: r#"model = "o3"  # the model

# mail
[mcp_servers.resend]
command = "SEMEL"  # a launcher
args = [
  "mcp",
  "--name",
  "resend",
  "--any-directory",
  "--",
  "HOME/bin/npx",
  "-y",
  "resend-mcp",  # the package
]
startup_timeout_sec = 20

[mcp_servers.resend.env]
RESEND_API_KEY = "hunter2"

[mcp_servers.notion]
command = "SEMEL"
args = ["mcp", "--name", "notion", "--url", "https://mcp.notion.com/mcp", "--header-env", "Authorization={}_HEADER_1", "--header-env", "X-Workspace=NOTION_WORKSPACE"]
env = { {}_HEADER_1 = "Bearer hunter2" }
env_vars = ["NOTION_WORKSPACE"]

[mcp_servers.context7]
command = "SEMEL"
args = ["mcp", "--name", "context7", "--url", "https://mcp.context7.com/mcp", "--header-env", "CONTEXT7_API_KEY={}_HEADER_1"]
env = { {}_HEADER_1 = "hunter2" }

[mcp_servers.figma]
url = "https://mcp.figma.com/mcp"
bearer_token_env_var = "FIGMA_TOKEN"
"#,
    },
];
