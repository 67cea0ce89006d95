//! The meaning of a command's end: one table, and which line of it applied.

use semel_core::judgement::error_text::{self, ErrorReading};
use semel_core::judgement::failure::{FailureMeaning, weigh};
use semel_core::policy::rule::{Failure, Rule};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;

/// The reading of an exit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExitReading {
    pub meaning: ExitMeaning,
    /// The line of the table, in words.
    pub line: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitMeaning {
    Succeeded,
    /// The program itself proves that nothing was sent.
    NeverSent,
    Refused,
    /// It says that it failed, and nothing says that it must happen only once.
    Reported,
    Ambiguous,
}

/// Exit codes of known programs. From their manuals; the rest of the table holds for every program.
const PROGRAMS: &[(&[&str], &[i32], ExitMeaning, &str)] = &[
    (&["curl"], &[6], ExitMeaning::NeverSent, "curl could not resolve the host"),
    (&["curl"], &[5], ExitMeaning::NeverSent, "curl could not resolve the proxy"),
    (&["curl"], &[7], ExitMeaning::NeverSent, "curl could not connect"),
    (&["curl"], &[35, 60], ExitMeaning::NeverSent, "curl's TLS handshake failed"),
    (&["curl"], &[1, 2, 3, 4], ExitMeaning::NeverSent, "curl did not understand the request"),
    (&["curl"], &[18], ExitMeaning::Ambiguous, "curl got a part of the answer only"),
    (&["curl"], &[22], ExitMeaning::Ambiguous, "curl got an HTTP error and did not say which"),
    (&["curl"], &[28], ExitMeaning::Ambiguous, "curl timed out"),
    (&["curl"], &[52], ExitMeaning::Ambiguous, "curl got no answer"),
    (&["curl"], &[55], ExitMeaning::Ambiguous, "curl failed while sending"),
    (&["curl"], &[56], ExitMeaning::Ambiguous, "curl failed while receiving"),
    (&["curl"], &[16, 92, 95], ExitMeaning::Ambiguous, "curl's HTTP stream broke"),
    (&["wget"], &[4], ExitMeaning::Ambiguous, "wget had a network failure"),
    // It follows redirections by itself, so what it could not verify may have been its second request.
    (&["wget"], &[5], ExitMeaning::Ambiguous, "wget's TLS verification failed"),
    (&["wget"], &[8], ExitMeaning::Ambiguous, "wget got an error answer and did not say which"),
    (&["ssh", "scp", "sftp"], &[255], ExitMeaning::Ambiguous, "the SSH connection failed"),
    (&["rsync"], &[10, 11, 12, 23, 24, 30, 35], ExitMeaning::Ambiguous, "rsync's transfer broke off"),
    (&["git"], &[128], ExitMeaning::Ambiguous, "git failed, perhaps after the remote took it"),
    (&["psql", "mysql", "mariadb"], &[2], ExitMeaning::Ambiguous, "the connection to the database was lost"),
    (&["timeout"], &[124, 137], ExitMeaning::Ambiguous, "the command timed out"),
];

/// Programs that run another one and pass its end on.
const WRAPPERS: &[&str] = &[
    "env", "nice", "ionice", "nohup", "setsid", "stdbuf", "sudo", "time", "timeout", "taskset", "chrt",
    "doas",
];

/// `curl`'s options that take the next word for themselves. Whatever else is no option counts as an address.
const CURL_TAKES_A_WORD: &[&str] = &[
    "-d",
    "-X",
    "-H",
    "-m",
    "-o",
    "-u",
    "-A",
    "-e",
    "-b",
    "-c",
    "-F",
    "-w",
    "-x",
    "-T",
    "-E",
    "--data",
    "--data-raw",
    "--data-binary",
    "--data-ascii",
    "--data-urlencode",
    "--json",
    "--request",
    "--header",
    "--max-time",
    "--connect-timeout",
    "--output",
    "--user",
    "--user-agent",
    "--referer",
    "--cookie",
    "--cookie-jar",
    "--form",
    "--form-string",
    "--write-out",
    "--proxy",
    "--upload-file",
    "--cert",
    "--key",
    "--cacert",
    "--capath",
    "--resolve",
    "--connect-to",
    "--interface",
    "--unix-socket",
    "--oauth2-bearer",
];

/// Of a program's path.
fn last_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or_default()
}

/// The program whose exit codes count, and whether it was called directly.
fn known_program(argv: &[String]) -> (&str, bool) {
    let first = argv.first().map_or("", |word| last_name(word));
    if !WRAPPERS.contains(&first) {
        return (first, true);
    }
    let known = |name: &str| PROGRAMS.iter().flat_map(|(programs, ..)| programs.iter()).find(|p| **p == name);
    let found = argv[1..].iter().find_map(|word| known(last_name(word)));
    found.map_or((first, true), |program| (program, false))
}

/// Whether one request is all that `curl` can have made. Only then does a failure before a request prove that none was
/// made: of several, or of one that was redirected or repeated, an earlier one may have got through.
fn asks_once(argv: &[String]) -> bool {
    // Files for one address may be several too.
    let is_several = |word: &str| word.contains(['{', '[', ',']);
    let mut addresses = 0;
    let mut words = argv.iter().skip(1);
    while let Some(word) = words.next() {
        if matches!(word.as_str(), "-T" | "--upload-file") {
            if words.next().is_some_and(|file| is_several(file)) {
                return false;
            }
        } else if CURL_TAKES_A_WORD.contains(&word.as_str()) {
            words.next();
        } else if let Some(long) = word.strip_prefix("--") {
            // It takes the beginning of an option for the whole.
            let goes_on = ["location", "next", "retry", "parallel", "config", "url-query", "follow"];
            if goes_on.iter().any(|option| long.starts_with(option) || option.starts_with(long)) {
                return false;
            }
            // `--url ADDRESS` is followed by a word that counts as one.
        } else if let Some(short) = word.strip_prefix('-') {
            // Several may stand together; the first that takes a word has the rest, or else the next one.
            let takes = |letter: char| CURL_TAKES_A_WORD.contains(&format!("-{letter}").as_str());
            let flags = &short[..short.find(takes).unwrap_or(short.len())];
            if flags.contains(['L', 'K', 'Z', ':']) || short.contains('T') && is_several(short) {
                return false;
            }
            if short.chars().nth(flags.chars().count() + 1).is_none() && flags != short {
                words.next();
            }
        } else if word.contains(['{', '[']) || word.starts_with('@') {
            return false;
        } else {
            addresses += 1;
        }
    }
    addresses == 1
}

/// Whether `curl` goes by settings that its command line does not show: they may repeat a request, or follow it.
pub fn has_settings(argv: &[String], places: &[PathBuf]) -> bool {
    // Only as the very first does it say that they are not read.
    let reads = !argv.get(1).is_some_and(|first| first.starts_with("-q") || first == "--disable");
    reads && places.iter().any(|file| file.exists())
}

/// Standard output is data and may have any word in it; why a command gave up it says last.
const STDOUT_READ_MAX: usize = 16 * 1024;

/// How a command ended.
#[derive(Debug, Clone, Copy)]
pub struct CommandExit<'a> {
    pub status: ExitStatus,
    pub timed_out: bool,
    pub stdout: &'a [u8],
    pub stderr: &'a [u8],
}

/// `settings`: what else it may go by is not known.
pub fn read(
    argv: &[String],
    exit: CommandExit<'_>,
    rule: &Rule,
    must_happen_once: bool,
    settings: impl FnOnce() -> bool,
) -> ExitReading {
    let reading = |meaning, line: String| ExitReading { meaning, line };
    let ambiguous = |line: String| reading(ExitMeaning::Ambiguous, line);
    if exit.timed_out {
        return ambiguous("it ran into its timeout and was stopped".to_owned());
    }
    let Some(code) = exit.status.code() else {
        let signal = exit.status.signal().unwrap_or_default();
        return ambiguous(format!("it was killed by signal {signal}"));
    };
    if code == 0 {
        return reading(ExitMeaning::Succeeded, "exit 0".to_owned());
    }
    // A nested semel: a part of it is in doubt or still in flight, whatever became of the rest.
    if matches!(code, 121 | 122) {
        return ambiguous(format!("exit {code}: a nested semel left a doubt"));
    }
    if rule.failure == Failure::InDoubt {
        return ambiguous(format!("exit {code}, and its rule makes every failure a doubt"));
    }
    let (program, directly) = known_program(argv);
    let in_table = PROGRAMS
        .iter()
        .find(|(programs, codes, ..)| programs.contains(&program) && codes.contains(&code))
        .map(|(_, _, meaning, line)| match meaning {
            ExitMeaning::NeverSent if !directly || !asks_once(argv) || settings() => {
                (ExitMeaning::Ambiguous, *line)
            }
            meaning => (*meaning, *line),
        });
    match in_table {
        Some((ExitMeaning::NeverSent, line)) => {
            return reading(ExitMeaning::NeverSent, format!("exit {code}: {line}"));
        }
        _ if rule.refused_exit.contains(&code) => {
            return reading(ExitMeaning::Refused, format!("exit {code}, listed as a refusal"));
        }
        Some((meaning, line)) => return reading(meaning, format!("exit {code}: {line}")),
        None => {}
    }
    if code == 124 {
        return ambiguous("exit 124: it timed out".to_owned());
    }
    // Shells report a child's death by signal as 128 + the signal's number.
    if (129..=159).contains(&code) {
        return ambiguous(format!("exit {code}: something in it was killed by signal {}", code - 128));
    }
    let lost = |output: &[u8]| error_text::lost(&String::from_utf8_lossy(output));
    let end = &exit.stdout[exit.stdout.len().saturating_sub(STDOUT_READ_MAX)..];
    let says = match lost(exit.stderr).or_else(|| lost(end)) {
        Some(phrase) => ErrorReading::Lost(phrase.to_owned()),
        None => ErrorReading::Nothing,
    };
    match (weigh(&says, must_happen_once), says) {
        (FailureMeaning::InDoubt, ErrorReading::Lost(phrase)) => {
            ambiguous(format!("exit {code}, and its output says \"{phrase}\""))
        }
        (FailureMeaning::InDoubt, _) => ambiguous(format!(
            "exit {code} does not prove that nothing was done; where it does, `--refused-exit {code}` or the rule's \
             `refused_exit` says so"
        )),
        _ => reading(ExitMeaning::Reported, format!("exit {code}")),
    }
}
