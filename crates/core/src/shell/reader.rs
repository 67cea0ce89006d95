//! Reads a line of bash into its simple commands, wherever they stand, with the place of each.
//!
//! It is no grammar: compound commands are a stack of the words that end them. That finds each command and says whether
//! the line is one plain and-list, which is all that anyone here asks.

use super::{Command, Input, Place, Word};
use std::ops::Range;

/// A line after reading.
#[derive(Debug)]
pub struct Line {
    pub commands: Vec<Command>,
    /// Whether all of it could be read.
    pub is_read: bool,
    /// Whether it is commands joined by `&&` alone, in the foreground, and none of them compound.
    pub is_and_list: bool,
}

/// Substitutions within each other. People write three; each costs stack.
const DEPTH_MAX: usize = 40;

pub fn read(line: &str) -> Line {
    let mut reader = Reader::new(line, 0);
    let is_read = reader.list(false).is_ok();
    let mut commands = reader.commands;
    commands.retain(|command| !command.words.is_empty());
    Line { commands, is_read, is_and_list: reader.is_and_list && is_read }
}

/// Nobody knows how bash would read it.
#[derive(Debug)]
struct Unreadable;

type Read<T> = Result<T, Unreadable>;

struct Reader<'l> {
    text: &'l str,
    at: usize,
    depth: usize,
    commands: Vec<Command>,
    /// Here-documents whose text begins behind the line.
    documents: Vec<Document>,
    is_and_list: bool,
    /// Whether the substitution that is read may never run.
    is_conditional: bool,
}

struct Document {
    command: usize,
    end: String,
    /// `<<-`: tabs before its lines do not count.
    is_indented: bool,
    is_literal: bool,
}

/// A compound command that is open.
struct Compound {
    end: &'static str,
    is_conditional: bool,
    /// Whether it stands behind `||` itself.
    is_alternative: bool,
}

/// One list of commands: the line, or a substitution in it.
#[derive(Default)]
struct List {
    compounds: Vec<Compound>,
    /// And-lists so far.
    parts: usize,
    is_part_open: bool,
    is_alternative: bool,
    /// The next compound command is the body of a function.
    is_body: bool,
    /// An operator stands before, so that a line end ends nothing.
    goes_on: bool,
    /// The pipeline so far, and the last simple command in it.
    pipeline: Option<Range<usize>>,
    last: Option<usize>,
    is_piped: bool,
}

impl List {
    fn is_conditional(&self) -> bool {
        self.is_alternative || self.compounds.last().is_some_and(|compound| compound.is_conditional)
    }

    fn open(&mut self, end: &'static str) {
        let is_group = matches!(end, ")" | "}") && !std::mem::take(&mut self.is_body);
        let is_conditional = self.is_conditional() || !is_group;
        let is_alternative = std::mem::take(&mut self.is_alternative);
        self.compounds.push(Compound { end, is_conditional, is_alternative });
    }

    fn close(&mut self, end: &str) -> Read<()> {
        let compound = self.compounds.pop().filter(|compound| compound.end == end).ok_or(Unreadable)?;
        self.is_alternative = compound.is_alternative;
        Ok(())
    }
}

impl<'l> Reader<'l> {
    fn new(text: &'l str, depth: usize) -> Reader<'l> {
        Reader {
            text,
            at: 0,
            depth,
            commands: Vec::new(),
            documents: Vec::new(),
            is_and_list: true,
            is_conditional: false,
        }
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    fn is_before(&self, text: &str) -> bool {
        self.text.as_bytes()[self.at..].starts_with(text.as_bytes())
    }

    fn skip(&mut self, text: &str) -> bool {
        let is_there = self.is_before(text);
        self.at += if is_there { text.len() } else { 0 };
        is_there
    }

    fn skip_blanks(&mut self) {
        while self.skip(" ") || self.skip("\t") || self.skip("\\\n") {}
        if self.is_before("#") {
            self.at = self.find(b"\n").unwrap_or(self.text.len());
        }
    }

    /// The next place of one of these bytes.
    fn find(&self, bytes: &[u8]) -> Option<usize> {
        self.find_before(self.text.len(), bytes)
    }

    fn find_before(&self, end: usize, bytes: &[u8]) -> Option<usize> {
        let rest = self.text.as_bytes().get(self.at..end)?;
        rest.iter().position(|byte| bytes.contains(byte)).map(|offset| self.at + offset)
    }

    /// Up to the end, or to the `)` of a substitution.
    fn list(&mut self, is_substitution: bool) -> Read<()> {
        let documents = std::mem::take(&mut self.documents);
        let mut list = List::default();
        loop {
            self.skip_blanks();
            let Some(byte) = self.byte(0) else { break };
            let is_list_end = byte == b')' && is_substitution && list.compounds.is_empty();
            if is_list_end {
                break;
            }
            if byte == b'\n' {
                self.at += 1;
                self.read_documents()?;
                if !list.goes_on {
                    self.end_part(&mut list);
                }
            } else if self.skip("&&") {
                self.end_pipeline(&mut list);
                (list.goes_on, list.is_alternative) = (true, false);
            } else if self.skip("||") {
                self.end_pipeline(&mut list);
                (list.goes_on, list.is_alternative) = (true, true);
                self.is_and_list &= !self.is_top();
            } else if self.skip("|&") || self.skip("|") {
                (list.goes_on, list.is_piped, list.last) = (true, true, None);
            } else if self.skip(";;&") || self.skip(";;") || self.skip(";&") {
                self.end_part(&mut list);
                self.case_pattern()?;
            } else if self.skip(";") {
                self.end_part(&mut list);
            } else if byte == b'&' && self.byte(1) != Some(b'>') {
                self.at += 1;
                self.end_part(&mut list);
                self.is_and_list &= !self.is_top();
            } else if byte == b')' {
                self.end_part(&mut list);
                self.at += 1;
                list.close(")")?;
            } else {
                self.command(&mut list)?;
            }
        }
        self.end_part(&mut list);
        let is_whole =
            list.compounds.is_empty() && (!is_substitution || self.documents.is_empty() && self.skip(")"));
        self.documents = documents;
        if is_whole { Ok(()) } else { Err(Unreadable) }
    }

    fn is_top(&self) -> bool {
        self.depth == 0
    }

    fn deeper(&mut self, read: impl FnOnce(&mut Self) -> Read<()>) -> Read<()> {
        if self.depth == DEPTH_MAX {
            return Err(Unreadable);
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    fn end_pipeline(&mut self, list: &mut List) {
        if let (Some(pipeline), Some(last)) = (list.pipeline.take(), list.last.take()) {
            let place = &mut self.commands[last].place;
            (place.pipeline, place.is_last) = (pipeline, true);
        }
        (list.pipeline, list.is_piped) = (None, false);
    }

    fn end_part(&mut self, list: &mut List) {
        self.end_pipeline(list);
        (list.is_part_open, list.is_alternative, list.goes_on) = (false, false, false);
    }

    /// A simple command, or a word that opens or closes a compound one.
    fn command(&mut self, list: &mut List) -> Read<()> {
        if !std::mem::replace(&mut list.is_part_open, true) {
            list.parts += 1;
            self.is_and_list &= !(self.is_top() && list.parts > 1);
        }
        list.goes_on = false;
        let start = list.pipeline.as_ref().map_or(self.at, |pipeline| pipeline.start);
        let read = match self.byte(0) {
            Some(b'(') if self.is_before("((") => {
                self.at += 2;
                self.arithmetic()
            }
            Some(b'(') => {
                self.at += 1;
                self.open(list, ")");
                Ok(())
            }
            _ => self.reserved_or_simple(list),
        };
        list.pipeline = Some(start..self.at);
        read
    }

    fn open(&mut self, list: &mut List, end: &'static str) {
        list.open(end);
        self.is_and_list &= !self.is_top();
    }

    fn reserved_or_simple(&mut self, list: &mut List) -> Read<()> {
        let word_end = self.find(b" \t\n;&|()<>\\'\"$`").unwrap_or(self.text.len());
        match &self.text[self.at..word_end] {
            // These words are only themselves where no quote follows.
            _ if self.text[word_end..].starts_with(['\\', '\'', '"', '$', '`']) => return self.simple(list),
            "if" => self.open(list, "fi"),
            "while" | "until" => self.open(list, "done"),
            "for" | "select" => {
                self.at = word_end;
                self.open(list, "done");
                return self.loop_words();
            }
            "case" => {
                self.at = word_end;
                self.open(list, "esac");
                self.skip_blanks();
                self.word()?;
                self.skip_space();
                return if self.skip("in") { self.case_pattern() } else { Err(Unreadable) };
            }
            "{" => self.open(list, "}"),
            "then" | "else" | "elif" | "do" => {}
            end @ ("fi" | "done" | "esac" | "}") => list.close(end)?,
            "!" => self.is_and_list &= !self.is_top(),
            "time" => {
                self.at = word_end;
                self.skip_blanks();
                self.skip("-p ");
                return Ok(());
            }
            "function" => {
                self.at = word_end;
                self.skip_blanks();
                self.word()?;
                self.skip_blanks();
                self.skip("()");
                list.is_body = true;
                return Ok(());
            }
            "[[" => {
                self.at = word_end;
                return self.condition();
            }
            "coproc" => return Err(Unreadable),
            _ => return self.simple(list),
        }
        self.at = word_end;
        Ok(())
    }

    /// Behind `for`: the name and the words, up to the body.
    fn loop_words(&mut self) -> Read<()> {
        loop {
            self.skip_blanks();
            if self.skip("((") {
                self.arithmetic()?;
            }
            let start = self.at;
            let word = self.word()?;
            if word.text == "do" {
                self.at = start;
            }
            if self.at == start {
                return Ok(());
            }
        }
    }

    /// Behind `in` or `;;`: up to the `)`. A list of patterns may also end here.
    fn case_pattern(&mut self) -> Read<()> {
        self.skip_space();
        if self.is_before("esac") {
            return Ok(());
        }
        while !self.skip(")") {
            self.skip_space();
            let start = self.at;
            if !(self.skip("(") || self.skip("|")) {
                self.word()?;
            }
            if self.at == start && !self.is_before(")") {
                return Err(Unreadable);
            }
        }
        Ok(())
    }

    fn skip_space(&mut self) {
        loop {
            self.skip_blanks();
            if !self.skip("\n") {
                return;
            }
        }
    }

    /// Behind `[[`.
    fn condition(&mut self) -> Read<()> {
        loop {
            self.skip_space();
            match self.byte(0).ok_or(Unreadable)? {
                b'(' | b')' | b'<' | b'>' | b'&' | b'|' | b';' => self.at += 1,
                _ if self.word()?.text == "]]" => return Ok(()),
                _ => {}
            }
        }
    }

    /// Behind `((`, up to the `))` that closes it.
    fn arithmetic(&mut self) -> Read<()> {
        let mut open = 2;
        while open > 0 {
            self.at = self.find(b"()$`").ok_or(Unreadable)?;
            match self.byte(0) {
                Some(b'(') => (open, self.at) = (open + 1, self.at + 1),
                // Otherwise it was a subshell in a substitution.
                Some(b')') if open == 2 && !self.is_before("))") => return Err(Unreadable),
                Some(b')') => (open, self.at) = (open - 1, self.at + 1),
                _ => self.expansion(&mut Word::default())?,
            }
        }
        Ok(())
    }

    fn simple(&mut self, list: &mut List) -> Read<()> {
        let own = self.commands.len();
        let is_conditional = self.is_conditional || list.is_conditional();
        let outer = std::mem::replace(&mut self.is_conditional, is_conditional);
        let place = Place { pipeline: 0..0, is_last: false, is_nested: !self.is_top(), is_conditional };
        let input = if list.is_piped { Input::Unknown } else { Input::None };
        self.commands.push(Command { words: Vec::new(), input, place });
        list.last = Some(own);
        loop {
            let end = self.at;
            self.skip_blanks();
            let digits = self.text.as_bytes()[self.at..].iter().take_while(|byte| byte.is_ascii_digit());
            let number = digits.count();
            match (self.byte(number), self.byte(number + 1)) {
                (Some(b'<' | b'>'), next) if number > 0 || next != Some(b'(') => {
                    let is_input = number == 0 || self.is_before("0<");
                    self.at += number;
                    self.redirection(own, is_input)?;
                    continue;
                }
                (Some(b'&'), Some(b'>')) if number == 0 => {
                    self.at += 1;
                    self.redirection(own, false)?;
                    continue;
                }
                (Some(b'('), _) if number == 0 && self.commands[own].words.len() == 1 => {
                    self.at += 1;
                    self.skip_blanks();
                    if !self.skip(")") {
                        return Err(Unreadable);
                    }
                    self.commands[own].words.clear();
                    list.is_body = true;
                    break;
                }
                (Some(b'('), _) if number == 0 => return Err(Unreadable),
                (None | Some(b'\n' | b';' | b'&' | b'|' | b')'), _) if number == 0 => {
                    self.at = end;
                    break;
                }
                _ => {}
            }
            let mut word = Word::default();
            let read = self.rest_of_word(&mut word);
            self.commands[own].words.push(word);
            read?;
        }
        self.is_conditional = outer;
        Ok(())
    }

    /// At `<` or `>`. Output that goes elsewhere makes no other command.
    fn redirection(&mut self, command: usize, is_input: bool) -> Read<()> {
        if self.skip("<<<") {
            self.skip_blanks();
            let Word { text, is_known } = self.word()?;
            let input = if is_known { Input::Text(text + "\n") } else { Input::Unknown };
            self.commands[command].input = input;
            return Ok(());
        }
        if self.skip("<<") {
            let is_indented = self.skip("-");
            self.skip_blanks();
            let start = self.at;
            let end = self.word()?.text;
            let is_literal = self.text[start..self.at].contains(['\'', '"', '\\']);
            self.documents.push(Document { command, end, is_indented, is_literal });
            return Ok(());
        }
        let reads = is_input && self.is_before("<");
        while self.skip("<") || self.skip(">") || self.skip("&") || self.skip("|") {
            // `> >(tee log)`, `< <(ls)`.
            if self.is_before(">(") || self.is_before("<(") {
                break;
            }
        }
        self.skip_blanks();
        let start = self.at;
        let target = self.word()?;
        if self.at == start {
            return Err(Unreadable);
        }
        if reads && target.text != "/dev/null" {
            self.commands[command].input = Input::Unknown;
        }
        Ok(())
    }

    /// The here-documents of the line that ended.
    fn read_documents(&mut self) -> Read<()> {
        for Document { command, end, is_indented, is_literal } in std::mem::take(&mut self.documents) {
            let start = self.at;
            let (mut body, mut body_end) = (String::new(), start);
            for line in self.text[start..].split_inclusive('\n') {
                self.at += line.len();
                let line = if is_indented { line.trim_start_matches('\t') } else { line };
                if line.strip_suffix('\n').unwrap_or(line) == end {
                    break;
                }
                body.push_str(line);
                body_end = self.at;
            }
            let behind = self.at;
            let is_known = is_literal || !body.contains(['$', '`', '\\']);
            if !is_literal {
                self.at = start;
                self.expansions_before(body_end)?;
                self.at = behind;
            }
            self.commands[command].input = if is_known { Input::Text(body) } else { Input::Unknown };
        }
        Ok(())
    }

    fn expansions_before(&mut self, end: usize) -> Read<()> {
        while let Some(at) = self.find_before(end, b"$`\\") {
            self.at = at;
            match self.byte(0) {
                Some(b'\\') => self.at = (self.at + 2).min(end),
                _ => self.expansion(&mut Word::default())?,
            }
        }
        if self.at > end { Err(Unreadable) } else { Ok(()) }
    }

    fn word(&mut self) -> Read<Word> {
        let mut word = Word::default();
        self.rest_of_word(&mut word)?;
        Ok(word)
    }

    /// Of an unreadable word, the part before the fault is kept.
    fn rest_of_word(&mut self, word: &mut Word) -> Read<()> {
        const SPECIAL: &[u8] = b" \t\n;&|()<>\\'\"$`*?[~{,.}";
        let start = self.at;
        // `{a,b}` and `{1..3}` are several words.
        let (mut brace, mut is_several) = (false, false);
        while let Some(byte) = self.byte(0) {
            match byte {
                b'<' | b'>' if self.byte(1) == Some(b'(') && self.at == start => {
                    self.at += 2;
                    self.deeper(|reader| reader.list(true))?;
                    word.push_unknown(&self.text[start..self.at]);
                }
                // `NAME=(a b)`
                b'(' if word.text.ends_with('=') => {
                    self.at += 1;
                    self.deeper(Reader::array)?;
                    word.is_known = false;
                }
                b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>' => break,
                b'\\' => {
                    let Some(c) = self.text[self.at + 1..].chars().next() else {
                        self.at += 1;
                        continue;
                    };
                    word.text.extend(Some(c).filter(|c| *c != '\n'));
                    self.at += 1 + c.len_utf8();
                }
                b'\'' => {
                    self.at += 1;
                    let end = self.find(b"'").unwrap_or(self.text.len());
                    word.text.push_str(&self.text[self.at..end]);
                    self.at = end;
                    self.closing_quote()?;
                }
                b'"' => self.double_quoted(word)?,
                b'$' if self.is_before("$'") => self.escaped(word)?,
                b'$' if self.is_before("$\"") => self.at += 1,
                b'$' | b'`' => self.expansion(word)?,
                _ => {
                    let is_glob = matches!(byte, b'*' | b'?' | b'[') || byte == b'~' && self.at == start;
                    word.is_known &= !is_glob;
                    brace |= byte == b'{';
                    is_several |= brace && (byte == b',' || self.is_before(".."));
                    word.is_known &= !(is_several && byte == b'}');
                    let from = self.at;
                    self.at += 1;
                    self.at = self.find(SPECIAL).unwrap_or(self.text.len());
                    word.text.push_str(&self.text[from..self.at]);
                }
            }
        }
        Ok(())
    }

    fn array(&mut self) -> Read<()> {
        while !self.skip(")") {
            self.skip_space();
            let start = self.at;
            self.word()?;
            if self.at == start && !self.is_before(")") {
                return Err(Unreadable);
            }
        }
        Ok(())
    }

    fn closing_quote(&mut self) -> Read<()> {
        self.at += 1;
        if self.at > self.text.len() {
            self.at = self.text.len();
            return Err(Unreadable);
        }
        Ok(())
    }

    fn double_quoted(&mut self, word: &mut Word) -> Read<()> {
        self.at += 1;
        loop {
            let end = self.find(b"\"\\$`").unwrap_or(self.text.len());
            word.text.push_str(&self.text[self.at..end]);
            self.at = end;
            match self.byte(0) {
                None | Some(b'"') => return self.closing_quote(),
                Some(b'\\') => {
                    match self.byte(1) {
                        Some(b'\n') => {}
                        Some(byte @ (b'"' | b'\\' | b'$' | b'`')) => word.text.push(char::from(byte)),
                        _ => {
                            word.text.push('\\');
                            self.at += 1;
                            continue;
                        }
                    }
                    self.at += 2;
                }
                _ => self.expansion(word)?,
            }
        }
    }

    /// `$'…'`
    fn escaped(&mut self, word: &mut Word) -> Read<()> {
        self.at += 2;
        loop {
            let end = self.find(b"'\\").unwrap_or(self.text.len());
            word.text.push_str(&self.text[self.at..end]);
            self.at = end;
            if !self.skip("\\") {
                return self.closing_quote();
            }
            match self.byte(0) {
                Some(b'n') => word.text.push('\n'),
                Some(b't') => word.text.push('\t'),
                Some(byte @ (b'\'' | b'"' | b'\\')) => word.text.push(char::from(byte)),
                _ => {
                    word.push_unknown("\\");
                    continue;
                }
            }
            self.at += 1;
        }
    }

    /// At `$` or a backquote: its commands are read, and the word has it as it is written.
    fn expansion(&mut self, word: &mut Word) -> Read<()> {
        let (start, own) = (self.at, self.commands.len());
        if self.is_before("`") {
            self.backquoted()?;
        } else if self.skip("$((") {
            self.deeper(Reader::arithmetic)?;
        } else if self.skip("$(") {
            self.deeper(|reader| reader.list(true))?;
            if let [Command { words, input: Input::Text(document), .. }] = &self.commands[own..]
                && let [Word { text: program, is_known: true }] = words.as_slice()
                && program == "cat"
            {
                // `$(cat <<'END' …)`: how agents write a long text. The shell drops the line ends behind it.
                word.text.push_str(document.trim_end_matches('\n'));
                self.commands.truncate(own);
                return Ok(());
            }
        } else if self.skip("${") {
            self.deeper(Reader::parameter)?;
        } else {
            self.at += 1;
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_?!@*#$-".contains(&byte);
            if !self.byte(0).is_some_and(is_name) {
                word.text.push('$');
                return Ok(());
            }
            self.at += 1;
        }
        word.push_unknown(&self.text[start..self.at]);
        Ok(())
    }

    /// Behind `${`.
    fn parameter(&mut self) -> Read<()> {
        loop {
            self.at = self.find(b"}'\"\\$`").ok_or(Unreadable)?;
            match self.byte(0) {
                Some(b'}') => break,
                Some(b'\\') => self.at = (self.at + 2).min(self.text.len()),
                Some(b'"') => self.double_quoted(&mut Word::default())?,
                Some(b'\'') => self.at += 1,
                _ => self.expansion(&mut Word::default())?,
            }
        }
        self.at += 1;
        Ok(())
    }

    fn backquoted(&mut self) -> Read<()> {
        self.at += 1;
        let mut inner = String::new();
        loop {
            let end = self.find(b"`\\").ok_or(Unreadable)?;
            inner.push_str(&self.text[self.at..end]);
            self.at = end + 1;
            if self.text.as_bytes()[end] == b'`' {
                break;
            }
            match self.byte(0) {
                Some(byte @ (b'`' | b'\\' | b'$')) => {
                    inner.push(char::from(byte));
                    self.at += 1;
                }
                _ => inner.push('\\'),
            }
        }
        self.deeper(|outer| {
            let mut reader = Reader::new(&inner, outer.depth);
            reader.is_conditional = outer.is_conditional;
            let read = reader.list(false);
            outer.commands.append(&mut reader.commands);
            read
        })
    }
}

impl Word {
    fn push_unknown(&mut self, written: &str) {
        self.text.push_str(written);
        self.is_known = false;
    }
}
