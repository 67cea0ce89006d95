//! The directory without which a command does not say what it starts: `npm start` is another server in another project,
//! `npx -y @scope/server` is the same one everywhere.

use std::path::{Path, PathBuf};

/// Programs that run what a project says.
struct Projects {
    programs: &'static [&'static str],
    /// What they look for in the directory, and in those above it; nothing: in the directory alone.
    manifests: &'static [&'static str],
    /// Options that name another directory, or the manifest.
    options: &'static [&'static str],
}

const PROJECTS: [Projects; 16] = [
    Projects {
        programs: &["npm", "pnpm", "yarn", "bun"],
        manifests: &["package.json"],
        options: &["--prefix", "-C", "--dir", "--cwd"],
    },
    Projects {
        programs: &["uv", "poetry", "pdm", "hatch", "rye"],
        manifests: &["pyproject.toml"],
        options: &["--directory", "--project", "-C", "-P", "-p"],
    },
    Projects { programs: &["pipenv"], manifests: &["Pipfile"], options: &[] },
    Projects { programs: &["cargo"], manifests: &["Cargo.toml"], options: &["--manifest-path", "-C"] },
    Projects { programs: &["go"], manifests: &["go.mod"], options: &["-C"] },
    Projects {
        programs: &["deno"],
        manifests: &["deno.json", "deno.jsonc", "package.json"],
        options: &["--cwd", "--config", "-c"],
    },
    Projects {
        programs: &["make", "gmake"],
        manifests: &[],
        options: &["-C", "--directory", "-f", "--file"],
    },
    Projects {
        programs: &["just"],
        manifests: &["justfile", "Justfile", ".justfile"],
        options: &["-d", "--working-directory", "-f", "--justfile"],
    },
    Projects {
        programs: &["task", "go-task"],
        manifests: &["Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "taskfile.yaml"],
        options: &["-d", "--dir", "-t", "--taskfile"],
    },
    Projects {
        programs: &["docker", "podman", "nerdctl", "docker-compose", "podman-compose"],
        manifests: &["compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"],
        options: &["--project-directory", "-f", "--file"],
    },
    Projects { programs: &["bundle", "rake"], manifests: &["Gemfile", "Rakefile"], options: &[] },
    Projects { programs: &["composer"], manifests: &["composer.json"], options: &["-d", "--working-dir"] },
    Projects { programs: &["mvn", "gradle", "sbt"], manifests: &[], options: &["-f", "--file", "-p"] },
    Projects { programs: &["mix"], manifests: &["mix.exs"], options: &[] },
    Projects { programs: &["dotnet", "swift"], manifests: &[], options: &["--project", "--package-path"] },
    Projects {
        programs: &["pixi", "mise", "devbox"],
        manifests: &["pixi.toml", "mise.toml", ".mise.toml", "devbox.json", "pyproject.toml"],
        options: &["--manifest-path", "-C", "--cd", "-c", "--config"],
    },
];

const SHELLS: [&str; 7] = ["sh", "bash", "zsh", "dash", "ash", "ksh", "fish"];

/// Programs that run a file, a module or a text.
const INTERPRETERS: [&str; 9] =
    ["python", "node", "ruby", "perl", "php", "java", "tsx", "ts-node", "Rscript"];

/// Programs that run packages, which have one name everywhere.
const PACKAGE_RUNNERS: [&str; 5] = ["npx", "bunx", "pnpx", "uvx", "pipx"];

/// Programs that only start another one, whose name comes after their own words.
const WRAPPERS: [&str; 18] = [
    "env",
    "sudo",
    "doas",
    "nice",
    "nohup",
    "time",
    "timeout",
    "stdbuf",
    "setsid",
    "cmd",
    "op",
    "doppler",
    "infisical",
    "dotenv",
    "dotenvx",
    "direnv",
    "aws-vault",
    "mise",
];

/// The directory that counts beside the words of a command, if one does. Of a program that is not known it does not:
/// most are found on the path and are one server from wherever they are started.
pub fn that_counts(words: &[&str], cwd: &Path) -> Option<PathBuf> {
    let (program, words) = words.split_first()?;
    let program = plain(program);
    let here = || Some(cwd.to_owned());
    let is_here = |word: &str| is_relative(word) && !cwd.join(word).exists() || names_a_part(word, cwd);
    if words.iter().any(|word| is_here(word)) {
        return here();
    }
    if let Some(project) = PROJECTS.iter().find(|project| project.programs.contains(&program))
        && runs_a_project(program, words, cwd)
    {
        return Some(project.root(words, cwd));
    }
    if WRAPPERS.contains(&program) {
        let at = words.iter().position(|word| is_known(plain(word)))?;
        return that_counts(&words[at..], cwd);
    }
    if SHELLS.contains(&program) {
        let script = words.iter().skip_while(|word| !is_short(word) || !word.contains('c'));
        return of_script(script.skip(1).find(|word| !word.starts_with('-'))?, cwd);
    }
    if INTERPRETERS.contains(&program) { of_interpreter(program, words, cwd) } else { None }
}

impl Projects {
    fn root(&self, words: &[&str], cwd: &Path) -> PathBuf {
        let named = named_by(self.options, words).map(|named| cwd.join(named)).filter(|named| named.exists());
        let named = named.unwrap_or_else(|| cwd.to_owned());
        let start = if named.is_file() { named.parent().unwrap_or(&named) } else { &named };
        let has_manifest =
            |place: &&Path| self.manifests.iter().any(|manifest| place.join(manifest).is_file());
        start.ancestors().find(has_manifest).unwrap_or(start).to_owned()
    }
}

/// Its name without its directory, its version and what a system appends.
fn plain(program: &str) -> &str {
    let name = program.rsplit(['/', '\\']).next().unwrap_or_default();
    let name = [".exe", ".cmd", ".bat"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
}

fn is_known(program: &str) -> bool {
    [&SHELLS[..], &INTERPRETERS, &PACKAGE_RUNNERS, &WRAPPERS].iter().any(|known| known.contains(&program))
        || PROJECTS.iter().any(|project| project.programs.contains(&program))
}

fn is_short(option: &str) -> bool {
    option.starts_with('-') && !option.starts_with("--")
}

/// Whether a word, or the value that an option has in it, is a place seen from the working directory.
fn is_relative(word: &str) -> bool {
    let value =
        if word.starts_with('-') { word.split_once('=').map_or("", |(_, value)| value) } else { word };
    let value = value.strip_prefix("file:").unwrap_or(value);
    value == "." || ["./", "../", ".:", "..:", ".#"].iter().any(|start| value.starts_with(start))
}

/// `server.py:app` and `server:app`, as frameworks of Python name what a file has.
fn names_a_part(word: &str, cwd: &Path) -> bool {
    let file = word.split_once(':').map_or("", |(file, _)| file);
    let is_here = |file: &str| cwd.join(file).is_file();
    !file.is_empty() && !file.starts_with('/') && (is_here(file) || is_here(&format!("{file}.py")))
}

fn named_by<'a>(options: &[&str], words: &[&'a str]) -> Option<&'a str> {
    let own = words.iter().position(|word| *word == "--").map_or(words, |end| &words[..end]);
    own.iter().enumerate().find_map(|(at, word)| match word.split_once('=') {
        Some((option, value)) if options.contains(&option) => Some(value),
        _ if options.contains(word) => own.get(at + 1).copied(),
        _ => None,
    })
}

/// The same programs also fetch packages and start images, which have one name everywhere.
fn runs_a_project(program: &str, words: &[&str], cwd: &Path) -> bool {
    let has = |any: &[&str]| words.iter().any(|word| any.contains(word));
    // A script is known by its own path.
    let has_script = || {
        let ends = [".py", ".js", ".mjs", ".cjs", ".ts"];
        words.iter().any(|word| ends.iter().any(|end| word.ends_with(end)) && cwd.join(word).is_file())
    };
    match program {
        "npm" => has(&["run", "run-script", "start", "test"]) || !has(&["exec", "x", "create", "init"]),
        "pnpm" | "yarn" => !has(&["dlx", "create"]),
        "bun" => (has(&["run"]) || !has(&["x", "create"])) && !has_script(),
        "uv" => has(&["run"]) && !has(&["tool"]) && !has_script(),
        "poetry" | "pdm" | "hatch" | "rye" | "pipenv" => !has_script(),
        "go" => {
            !words.iter().skip(1).find(|word| !word.starts_with('-')).is_some_and(|word| word.contains('@'))
        }
        "deno" => has(&["task"]),
        "docker" | "podman" | "nerdctl" => has(&["compose"]),
        "dotnet" | "swift" | "mise" => has(&["run", "watch"]),
        _ => true,
    }
}

fn of_interpreter(program: &str, words: &[&str], cwd: &Path) -> Option<PathBuf> {
    let here = || Some(cwd.to_owned());
    if program == "python"
        && let Some(module) = module(words)
    {
        // Python looks for it in the directory first, then among what is installed.
        let root = module.split('.').next().unwrap_or(module);
        let is_in = |place: &Path| place.join(root).is_dir() || place.join(format!("{root}.py")).is_file();
        return if is_in(cwd) || is_in(&cwd.join("src")) { here() } else { None };
    }
    let is_text = |word: &str| match program {
        "python" => word == "-c",
        "node" => ["-e", "-p", "--eval", "--print", "--run"].contains(&word),
        "php" => word == "-r",
        _ => word == "-e",
    };
    if words.iter().take_while(|word| word.starts_with('-')).any(|word| is_text(word)) {
        return here();
    }
    // A file that is there is known by its path; one that is found with an ending is not seen as such.
    let ends = [".js", ".mjs", ".cjs", ".ts"];
    let has_ending = |word: &str| ends.iter().any(|end| cwd.join(format!("{word}{end}")).is_file());
    let is_elsewhere = |word: &str| word.starts_with('/') || word.contains(':') || cwd.join(word).exists();
    let mut files = words.iter().filter(|word| !word.starts_with('-'));
    let is_lost = files.clone().next().is_some() && !files.clone().any(|word| is_elsewhere(word));
    if is_lost || files.any(|word| !word.starts_with('/') && has_ending(word)) { here() } else { None }
}

/// What follows `-m`, which may stand behind other letters.
fn module<'a>(words: &[&'a str]) -> Option<&'a str> {
    let options = words.iter().take_while(|word| word.starts_with('-')).enumerate();
    let mut short = options.filter(|(_, word)| is_short(word));
    short.find_map(|(at, word)| {
        let letter = word.find(['m', 'c', 'W', 'X'])?;
        match word[letter..].strip_prefix('m')? {
            "" => words.get(at + 1).copied(),
            module => Some(module),
        }
    })
}

/// A shell's text: its commands one after the other, as far as they can be told without a shell.
fn of_script(script: &str, cwd: &Path) -> Option<PathBuf> {
    if script.contains(['`', '(', ')', '*', '?']) || script.contains("PWD") {
        return Some(cwd.to_owned());
    }
    let mut place = cwd.to_owned();
    for command in script.split(['&', ';', '|', '\n']) {
        let words: Vec<&str> =
            command.split_whitespace().map(|word| word.trim_matches(['"', '\''])).collect();
        let own = words.iter().position(|word| *word != "exec" && !word.contains('='));
        let words = &words[own.unwrap_or(words.len())..];
        match words {
            // The text says it, wherever it is read.
            ["cd", home, ..] if home.starts_with(['~', '$']) => return None,
            ["cd", to, ..] => place = place.join(to),
            [] => {}
            [_, arguments @ ..] => {
                let is_here = |word: &str| !word.starts_with('/') && place.join(word).exists();
                let counts = that_counts(words, &place);
                let is_own = words[0].contains('/') && !words[0].starts_with(['/', '~', '$']);
                if counts.is_some() || is_own || arguments.iter().any(|word| is_here(word)) {
                    return counts.or(Some(place));
                }
            }
        }
    }
    None
}
