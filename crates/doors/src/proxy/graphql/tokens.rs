//! The words and marks of a document (GraphQL, section 2.1). Comments, commas and white space say nothing.

use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    Name,
    Number,
    /// With its quotes.
    Text,
    /// A text in three quotes.
    Block,
    /// `{`, `(`, `...` and the like.
    Mark,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GraphqlToken<'a> {
    pub kind: TokenKind,
    pub text: &'a str,
    start: usize,
}

impl GraphqlToken<'_> {
    pub fn is(&self, mark: &str) -> bool {
        self.kind == TokenKind::Mark && self.text == mark
    }

    pub fn end(&self) -> usize {
        self.start + self.text.len()
    }

    pub fn range(&self) -> Range<usize> {
        self.start..self.end()
    }
}

#[derive(Debug)]
pub struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub fn of(text: &'a str) -> Lexer<'a> {
        let at = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        Lexer { text, at }
    }

    /// The next one; `Some(None)` at the end, `None` if there is something that is none.
    pub fn next(&mut self) -> Option<Option<GraphqlToken<'a>>> {
        self.pass_over_nothing();
        let rest = &self.text[self.at..];
        let Some(first) = rest.bytes().next() else { return Some(None) };
        let (kind, length) = match first {
            b'_' | b'a'..=b'z' | b'A'..=b'Z' => {
                (TokenKind::Name, run(rest, |byte| byte == b'_' || byte.is_ascii_alphanumeric()))
            }
            b'-' | b'0'..=b'9' => {
                let number = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
                (TokenKind::Number, run(rest, number))
            }
            b'"' if rest.starts_with("\"\"\"") => (TokenKind::Block, block(rest)?),
            b'"' => (TokenKind::Text, text(rest)?),
            b'.' => (TokenKind::Mark, if rest.starts_with("...") { 3 } else { return None }),
            b'!' | b'$' | b'&' | b'(' | b')' | b':' | b'=' | b'@' | b'[' | b']' | b'{' | b'|' | b'}' => {
                (TokenKind::Mark, 1)
            }
            _ => return None,
        };
        let token = GraphqlToken { kind, text: &rest[..length], start: self.at };
        self.at += length;
        Some(Some(token))
    }

    /// The next one, if it is as wanted; else it stays.
    pub fn take_if(
        &mut self,
        wanted: impl Fn(&GraphqlToken<'a>) -> bool,
    ) -> Option<Option<GraphqlToken<'a>>> {
        let before = self.at;
        let token = self.next()?.filter(wanted);
        if token.is_none() {
            self.at = before;
        }
        Some(token)
    }

    /// This mark and no other.
    pub fn mark(&mut self, mark: &str) -> Option<()> {
        self.next()??.is(mark).then_some(())
    }

    fn pass_over_nothing(&mut self) {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' | b',' => self.at += 1,
                b'#' => {
                    let line = bytes[self.at..].iter().position(|byte| matches!(byte, b'\n' | b'\r'));
                    self.at = line.map_or(bytes.len(), |line| self.at + line);
                }
                _ => break,
            }
        }
    }
}

fn run(text: &str, belongs: impl Fn(u8) -> bool) -> usize {
    text.bytes().position(|byte| !belongs(byte)).unwrap_or(text.len())
}

/// The length of a text in quotes, which ends on its line.
fn text(rest: &str) -> Option<usize> {
    let bytes = rest.as_bytes();
    let mut at = 1;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            b'\n' | b'\r' => return None,
            _ => at += 1,
        }
    }
}

/// The length of a text in three quotes, in which only `\"""` is an escape.
fn block(rest: &str) -> Option<usize> {
    let bytes = rest.as_bytes();
    let mut at = 3;
    loop {
        match bytes.get(at)? {
            b'\\' if bytes[at..].starts_with(br#"\""""#) => at += 4,
            b'"' if bytes[at..].starts_with(br#"""""#) => return Some(at + 3),
            _ => at += 1,
        }
    }
}
