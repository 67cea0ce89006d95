//! What a command's end means: one table, and which line of it applied.

use semel_core::class::Class;
use semel_core::policy::rule::{Failure, Rule};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;

/// The reading of an exit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    pub meaning: Meaning,
    /// The line of the table, in words.
    pub line: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    Succeeded,
    /// The program itself proves that nothing was sent.
    NeverSent,
    Refused,
    Ambiguous,
}

/// Exit codes of known programs. From their manuals; the rest of the table holds for every program.
const PROGRAMS: &[(&[&str], &[i32], Meaning, &str)] = &[
    (&["curl"], &[6], Meaning::NeverSent, "curl could not resolve the host"),
    (&["curl"], &[5], Meaning::NeverSent, "curl could not resolve the proxy"),
    (&["curl"], &[7], Meaning::NeverSent, "curl could not connect"),
    (&["curl"], &[35, 60], Meaning::NeverSent, "curl's TLS handshake failed"),
    (&["curl"], &[1, 2, 3, 4], Meaning::NeverSent, "curl did not understand the request"),
    (&["curl"], &[18], Meaning::Ambiguous, "curl got a part of the answer only"),
    (&["curl"], &[22], Meaning::Ambiguous, "curl got an HTTP error and did not say which"),
    (&["curl"], &[28], Meaning::Ambiguous, "curl timed out"),
    (&["curl"], &[52], Meaning::Ambiguous, "curl got no answer"),
    (&["curl"], &[55], Meaning::Ambiguous, "curl failed while sending"),
    (&["curl"], &[56], Meaning::Ambiguous, "curl failed while receiving"),
    (&["curl"], &[16, 92, 95], Meaning::Ambiguous, "curl's HTTP stream broke"),
    (&["wget"], &[4], Meaning::Ambiguous, "wget had a network failure"),
    // It follows redirections by itself, so what it could not verify may have been its second request.
    (&["wget"], &[5], Meaning::Ambiguous, "wget's TLS verification failed"),
    (&["wget"], &[8], Meaning::Ambiguous, "wget got an error answer and did not say which"),
    (&["ssh", "scp", "sftp"], &[255], Meaning::Ambiguous, "the SSH connection failed"),
    (&["rsync"], &[10, 11, 12, 23, 24, 30, 35], Meaning::Ambiguous, "rsync's transfer broke off"),
    (&["git"], &[128], Meaning::Ambiguous, "git failed, perhaps after the remote took it"),
    (&["psql", "mysql", "mariadb"], &[2], Meaning::Ambiguous, "the connection to the database was lost"),
    (&["timeout"], &[124, 137], Meaning::Ambiguous, "the command timed out"),
];

/// Phrases on stderr that speak of a lost answer, in lower case.
const LOST_ANSWER: &[&str] = &[
    "timed out",
    "timeout",
    "deadline exceeded",
    "connection reset",
    "connection closed",
    "connection aborted",
    "connection lost",
    "broken pipe",
    "bad gateway",
    "gateway time-out",
    "service unavailable",
    "unexpected eof",
    "empty reply",
    "server disconnected",
    "server closed",
    "remote end hung up",
    "socket hang up",
    "econnreset",
    "etimedout",
    "eof occurred",
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

/// `settings`: what else it may go by is not known.
pub fn read(
    argv: &[String],
    status: ExitStatus,
    timed_out: bool,
    stderr: &[u8],
    rule: &Rule,
    settings: impl FnOnce() -> bool,
) -> Reading {
    let reading = |meaning, line: &str| Reading { meaning, line: line.to_owned() };
    if timed_out {
        return reading(Meaning::Ambiguous, "it outlived its timeout and was ended");
    }
    let Some(code) = status.code() else {
        let signal = status.signal().unwrap_or_default();
        return reading(Meaning::Ambiguous, &format!("it died by signal {signal}"));
    };
    if code == 0 {
        return reading(Meaning::Succeeded, "exit 0");
    }
    let (program, directly) = known_program(argv);
    let in_table = PROGRAMS
        .iter()
        .find(|(programs, codes, ..)| programs.contains(&program) && codes.contains(&code))
        .map(|(_, _, meaning, line)| match meaning {
            Meaning::NeverSent if !directly || !asks_once(argv) || settings() => (Meaning::Ambiguous, *line),
            meaning => (*meaning, *line),
        });
    if rule.failure == Failure::InDoubt {
        return reading(
            Meaning::Ambiguous,
            &format!("exit {code}, and the rule reads every failure as ambiguous"),
        );
    }
    if let Some((Meaning::NeverSent, line)) = in_table {
        return reading(Meaning::NeverSent, &format!("exit {code}: {line}"));
    }
    if rule.refused_exit.contains(&code) {
        return reading(Meaning::Refused, &format!("exit {code}, which the rule lists as a refusal"));
    }
    if let Some((meaning, line)) = in_table {
        return reading(meaning, &format!("exit {code}: {line}"));
    }
    // A nested semel: a part of it is in doubt or still in flight, whatever became of the rest.
    if matches!(code, 121 | 122) {
        return reading(
            Meaning::Ambiguous,
            &format!("exit {code}: something in it is in doubt or in flight"),
        );
    }
    if code == 124 {
        return reading(Meaning::Ambiguous, "exit 124: it timed out");
    }
    // Shells report a child's death by signal as 128 + the signal's number.
    if (129..=159).contains(&code) {
        return reading(
            Meaning::Ambiguous,
            &format!("exit {code}: something in it died by signal {}", code - 128),
        );
    }
    let text = String::from_utf8_lossy(stderr).to_lowercase();
    if let Some(phrase) = LOST_ANSWER.iter().find(|phrase| text.contains(*phrase)) {
        return reading(Meaning::Ambiguous, &format!("exit {code}, and its stderr says \"{phrase}\""));
    }
    if rule.class == Class::Consequential {
        let line = format!("exit {code} of a consequential action, which no `refused_exit` of a rule lists");
        return reading(Meaning::Ambiguous, &line);
    }
    reading(Meaning::Refused, &format!("exit {code}"))
}
