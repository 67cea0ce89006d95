//! Whether a tool is known to have help. One that does not know `--help` does its work when it is asked for it.

use std::ffi::OsStr;
use std::io::Read;
use std::path::Path;

/// Sections of the manual that are about programs, and how its pages are packed.
const SECTIONS: [u8; 3] = [1, 6, 8];
const PACKED: [&str; 4] = ["", ".gz", ".xz", ".zst"];

/// As much of a program is searched for its options. Most of the largest have them near their beginning.
const FILE_BYTES_READ: u64 = 64 * 1024 * 1024;

/// Of several words nobody can tell whether the first hands the others to another program, so the first file among the
/// others decides.
pub fn is_known(words: &[String], search: &OsStr, cwd: &Path) -> bool {
    match words {
        [] => false,
        // A program of one's own is not known by the files that it is given.
        [program, ..] if program.contains('/') => names_help(&cwd.join(program)),
        [program] => {
            let file = std::env::split_paths(search).map(|directory| directory.join(program));
            file.into_iter()
                .find(|file| file.is_file())
                .is_some_and(|file| names_help(&file) || is_documented(&file, program))
        }
        [_, rest @ ..] => {
            let mut files = rest.iter().map(|word| cwd.join(word)).filter(|path| path.is_file());
            files.next().is_some_and(|file| names_help(&file))
        }
    }
}

/// Whether it has a page in the manual, or a completion, of the place where it is installed.
fn is_documented(file: &Path, program: &str) -> bool {
    let installed = file.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
    let is_there = |below: String| installed.join("share").join(below).exists();
    let is_page =
        |section: u8, packed: &str| is_there(format!("man/man{section}/{program}.{section}{packed}"));
    SECTIONS.iter().any(|section| PACKED.iter().any(|packed| is_page(*section, packed)))
        || is_there(format!("bash-completion/completions/{program}"))
        || is_there(format!("zsh/site-functions/_{program}"))
        || is_there(format!("fish/vendor_completions.d/{program}.fish"))
}

fn names_help(file: &Path) -> bool {
    let mut bytes = Vec::new();
    let read = std::fs::File::open(file).and_then(|file| file.take(FILE_BYTES_READ).read_to_end(&mut bytes));
    let option = b"--help";
    let is_word = |at: usize| bytes.get(at + option.len()).is_none_or(|next| !next.is_ascii_alphanumeric());
    read.is_ok() && bytes.windows(option.len()).enumerate().any(|(at, part)| part == option && is_word(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_is_known_by_the_file_a_manual_or_a_completion_and_of_a_script_by_the_script() {
        let place = tempfile::tempdir().expect("a directory");
        let file = |name: &str, text: &str| {
            let path = place.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a directory")).expect("directories");
            std::fs::write(&path, text).expect("a file");
        };
        file("bin/charge", "#!/bin/sh\necho --helpless >> charged\n");
        file("bin/told", "#!/bin/sh\n[ \"$1\" = --help ] && exit\n");
        for (name, of) in [("git", "share/man/man1/git.1.gz"), ("gh", "share/zsh/site-functions/_gh")] {
            file(&format!("bin/{name}"), "");
            file(of, "");
        }
        let search = place.path().join("bin");
        for (line, known) in [
            ("charge", false),
            ("bin/charge", false),
            ("sh bin/charge", false),
            ("sh -c bin/charge;true", false),
            ("git charge", false),
            ("nothing", false),
            ("told", true),
            ("./bin/told", true),
            ("env A=b bin/told x", true),
            ("sh bin/charge bin/told", false),
            ("bin/charge bin/told", false),
            ("git", true),
            ("gh", true),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(is_known(&words, search.as_os_str(), place.path()), known, "{line}");
        }
    }
}
