//! Recorded text on a terminal. What tools and callers wrote must not move the cursor, change colours, ring the bell
//! or turn the reading direction around.

/// As one line: whatever controls a terminal is shown as an escape, line ends and tabs as spaces.
pub fn line(text: &str) -> String {
    neutralised(text, |c| matches!(c, '\n' | '\r' | '\t').then_some(' '))
}

/// As several lines: line ends and tabs stay.
pub fn lines(text: &str) -> String {
    neutralised(text, |c| matches!(c, '\n' | '\t').then_some(c))
}

/// One line of at most so many characters.
pub fn shortened(text: &str, characters: usize) -> String {
    let text = line(text);
    if text.chars().count() <= characters {
        return text;
    }
    text.chars().take(characters.saturating_sub(1)).chain(['…']).collect()
}

fn neutralised(text: &str, kept: impl Fn(char) -> Option<char>) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        match kept(c) {
            Some(kept) => plain.push(kept),
            None if is_active(c) => plain.extend(c.escape_unicode()),
            None => plain.push(c),
        }
    }
    plain
}

/// Control characters of both sets, marks of reading direction, and characters without any width.
fn is_active(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}')
        || matches!(c, '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{180E}' | '\u{3164}' | '\u{FFA0}')
        // Tags: whole sentences can be written in them, which a model reads and nobody sees.
        || matches!(c, '\u{E0000}'..='\u{E0FFF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_are_shown_and_not_obeyed() {
        assert_eq!(line("\u{1b}[31mred\u{7}"), "\\u{1b}[31mred\\u{7}");
        assert_eq!(line("\u{9b}2J\u{7f}"), "\\u{9b}2J\\u{7f}");
        assert_eq!(line("a\r\nb\tc"), "a  b c");
        assert_eq!(line("invoice\u{202e}fdp"), "invoice\\u{202e}fdp");
        assert_eq!(lines("a\n\tb\r\u{1b}"), "a\n\tb\\u{d}\\u{1b}");
    }

    #[test]
    fn what_has_no_width_is_shown() {
        assert_eq!(line("pay\u{e0065}\u{e0076}e\u{ad}"), "pay\\u{e0065}\\u{e0076}e\\u{ad}");
    }

    #[test]
    fn ordinary_text_stays_as_it_is() {
        for text in ["", "order 1001", "Grüße, 世界 🎉", "a\\u{1b}"] {
            assert_eq!(line(text), text);
        }
    }

    #[test]
    fn a_long_line_says_that_it_was_cut() {
        assert_eq!(shortened("abcdef", 4), "abc…");
        assert_eq!(shortened("abcd", 4), "abcd");
    }
}
