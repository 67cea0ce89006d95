//! Server-sent events, cut out of a byte stream without changing a byte of it.
//!
//! A proxy gives on what it was given: ids, retry times, comments and line ends stay as the server wrote them. So each
//! piece carries its own raw bytes, and all raw bytes in order are the stream.

use bytes::{Bytes, BytesMut};

/// The largest event that is looked at as a whole: as large as the largest message of the protocols that use events.
pub const EVENT_BYTES_MAX: usize = 128 * 1024 * 1024;

/// A part of the stream that may be given on by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Exactly the bytes that were read.
    pub raw: Bytes,
    pub fields: Fields,
}

/// The fields of an event. A comment or a lone line end says nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fields {
    /// The event's own id; an empty one resets what the client remembers.
    pub id: Option<String>,
    pub event: Option<String>,
    /// In milliseconds.
    pub retry: Option<u64>,
    /// The lines of data, joined by line feeds. Absent if there was no such line.
    pub data: Option<Bytes>,
}

/// The event is larger than is looked at as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event has more than {max} bytes")]
pub struct TooLarge {
    pub max: usize,
}

#[derive(Debug)]
pub struct Parser {
    buffer: BytesMut,
    max: usize,
    /// Where the line that is being read begins.
    line_start: usize,
    /// Up to where no line end was found.
    scanned: usize,
    /// The last byte given away was a carriage return, so a line feed that follows belongs to it.
    after_return: bool,
    /// Whether anything but comments was read of the present event.
    has_field: bool,
    begun: bool,
}

impl Default for Parser {
    fn default() -> Self {
        Parser::with_limit(EVENT_BYTES_MAX)
    }
}

impl Parser {
    pub fn with_limit(max: usize) -> Self {
        Parser {
            buffer: BytesMut::new(),
            max,
            line_start: 0,
            scanned: 0,
            after_return: false,
            has_field: false,
            begun: false,
        }
    }

    pub fn push(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// The next piece that is complete.
    pub fn next_piece(&mut self) -> Result<Option<Piece>, TooLarge> {
        if self.after_return && !self.buffer.is_empty() {
            self.after_return = false;
            if self.buffer[0] == b'\n' {
                // The second half of a line end whose first half was given away already.
                let raw = self.buffer.split_to(1).freeze();
                return Ok(Some(Piece { raw, fields: Fields::default() }));
            }
        }
        while let Some((line_end, after)) = self.line_end() {
            let line = &self.buffer[self.line_start..line_end];
            let blank = line.is_empty();
            // A comment between events is given on at once: it is there to keep the connection busy.
            let lone_comment = line.first() == Some(&b':') && !self.has_field && self.line_start == 0;
            if blank || lone_comment {
                return Ok(Some(self.cut(after)));
            }
            self.has_field |= line.first() != Some(&b':');
            self.line_start = after;
            self.scanned = after;
        }
        if self.buffer.len() > self.max {
            return Err(TooLarge { max: self.max });
        }
        Ok(None)
    }

    /// The last event of a stream that has ended by itself: one whose blank line was left out.
    pub fn last_piece(&mut self) -> Option<Piece> {
        (!self.buffer.is_empty()).then(|| self.cut(self.buffer.len()))
    }

    /// Bytes that belong to no complete event. A stream that ends here ended in the middle of one.
    pub fn rest(&mut self) -> Bytes {
        self.buffer.split().freeze()
    }

    /// Where the present line ends, and where the next one begins.
    fn line_end(&mut self) -> Option<(usize, usize)> {
        let found = self.buffer[self.scanned..].iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        let Some(at) = found.map(|at| at + self.scanned) else {
            self.scanned = self.buffer.len();
            return None;
        };
        let pair = self.buffer[at] == b'\r' && self.buffer.get(at + 1) == Some(&b'\n');
        let after = at + if pair { 2 } else { 1 };
        // Of a pair that is split over chunks only the first half is here. If it ends an event, that is given away now
        // and the other half later; within an event the line end must be known whole.
        let undecided = self.buffer[at] == b'\r' && !pair && after == self.buffer.len();
        if undecided && at != self.line_start {
            self.scanned = at;
            return None;
        }
        Some((at, after))
    }

    fn cut(&mut self, after: usize) -> Piece {
        let raw = self.buffer.split_to(after).freeze();
        self.after_return = raw.last() == Some(&b'\r');
        let skip = if self.begun || !raw.starts_with(BYTE_ORDER_MARK) { 0 } else { BYTE_ORDER_MARK.len() };
        self.begun = true;
        self.line_start = 0;
        self.scanned = 0;
        self.has_field = false;
        let fields = Fields::of(&raw.slice(skip..));
        Piece { raw, fields }
    }
}

/// One may stand at the beginning of a stream, and is no part of the first line.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

impl Fields {
    fn of(raw: &Bytes) -> Fields {
        let mut fields = Fields::default();
        let mut data: Vec<Bytes> = Vec::new();
        for line in lines(raw) {
            let line = raw.slice(line);
            let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
            let mut value = line.slice((colon + 1).min(line.len())..);
            if value.first() == Some(&b' ') {
                value = value.slice(1..);
            }
            let text = || String::from_utf8_lossy(&value).into_owned();
            match &line[..colon] {
                b"data" => data.push(value),
                b"event" => fields.event = Some(text()),
                // An id with a NUL is ignored, as the standard says.
                b"id" if !value.contains(&0) => fields.id = Some(text()),
                b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                    fields.retry = Some(text().parse().unwrap_or(u64::MAX));
                }
                _ => {}
            }
        }
        fields.data = match data.len() {
            0 => None,
            1 => data.pop(),
            _ => Some(data.join(&b'\n').into()),
        };
        fields
    }
}

impl Piece {
    /// The same event with other data: every other line stays as it is.
    pub fn with_data(&self, data: &Bytes) -> Bytes {
        self.with_data_in_parts(std::slice::from_ref(data)).concat().into()
    }

    /// The same with data that comes in parts, which are shared with the event.
    pub fn with_data_in_parts(&self, data: &[Bytes]) -> Vec<Bytes> {
        let mut raw = Vec::new();
        let mut written = false;
        let mut from = 0;
        for line in lines(&self.raw) {
            let is_data = self.raw[line.clone()].starts_with(b"data:") || &self.raw[line.clone()] == b"data";
            let after = line_after(&self.raw, line.end);
            if is_data && !written {
                raw.extend(data_lines(data, &self.raw.slice(line.end..after)));
                written = true;
            } else if !is_data {
                raw.push(self.raw.slice(from..after));
            }
            from = after;
        }
        raw
    }
}

/// A comment, which every reader passes over.
pub const NOTHING_YET: &[u8] = b": nothing yet\n\n";

/// One event with this data, for servers that have no event to begin with.
pub fn message(data: &Bytes) -> Bytes {
    message_in_parts(std::slice::from_ref(data)).concat().into()
}

/// The same with data that comes in parts, which are shared with the event.
pub fn message_in_parts(data: &[Bytes]) -> Vec<Bytes> {
    let head = [Bytes::from_static(b"event: message\n")];
    let lines = data_lines(data, &Bytes::from_static(b"\n"));
    head.into_iter().chain(lines).chain([Bytes::from_static(b"\n")]).collect()
}

/// Every line of the data in a line of its own.
fn data_lines(data: &[Bytes], line_end: &Bytes) -> Vec<Bytes> {
    const FIELD: Bytes = Bytes::from_static(b"data: ");
    let mut lines = vec![FIELD];
    for part in data {
        let mut from = 0;
        for (at, _) in part.iter().enumerate().filter(|(_, byte)| matches!(byte, b'\n' | b'\r')) {
            lines.extend([part.slice(from..at), line_end.clone(), FIELD]);
            from = at + 1;
        }
        lines.push(part.slice(from..));
    }
    lines.push(line_end.clone());
    lines
}

/// The lines of an event, without their ends.
fn lines(raw: &[u8]) -> impl Iterator<Item = std::ops::Range<usize>> {
    let mut from = 0;
    std::iter::from_fn(move || {
        if from >= raw.len() {
            return None;
        }
        let end = raw[from..].iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        let end = end.map_or(raw.len(), |end| from + end);
        let line = from..end;
        from = line_after(raw, end);
        Some(line)
    })
}

fn line_after(raw: &[u8], end: usize) -> usize {
    match raw.get(end..) {
        Some([b'\r', b'\n', ..]) => end + 2,
        Some([_, ..]) => end + 1,
        _ => end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pieces(chunks: &[&[u8]]) -> (Vec<Piece>, Bytes) {
        let mut parser = Parser::default();
        let mut pieces = Vec::new();
        for chunk in chunks {
            parser.push(chunk);
            while let Some(piece) = parser.next_piece().expect("small") {
                pieces.push(piece);
            }
        }
        (pieces, parser.rest())
    }

    /// What a reader of the stream would see: events with fields, nothing else.
    fn said(pieces: &[Piece]) -> Vec<Fields> {
        pieces
            .iter()
            .map(|piece| piece.fields.clone())
            .filter(|fields| *fields != Fields::default())
            .collect()
    }

    fn data(text: &'static str) -> Option<Bytes> {
        Some(Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn an_event_has_id_retry_event_and_lines_of_data() {
        let (pieces, rest) =
            pieces(&[b"id: 7\nretry: 500\nevent: message\ndata: {\"a\":\ndata:1}\nother: x\n\n"]);
        let wanted = Fields {
            id: Some("7".into()),
            event: Some("message".into()),
            retry: Some(500),
            data: data("{\"a\":\n1}"),
        };
        assert_eq!(said(&pieces), [wanted]);
        assert!(rest.is_empty());
    }

    #[test]
    fn a_priming_event_has_empty_data_and_a_comment_has_none() {
        let (pieces, _) = pieces(&[b"id: 1\ndata:\n\n: ping\n\n: still\n"]);
        assert_eq!(pieces[0].fields.data, data(""));
        let raw: Vec<&[u8]> = pieces[1..].iter().map(|piece| &piece.raw[..]).collect();
        assert_eq!(raw, [&b": ping\n"[..], b"\n", b": still\n"]);
        assert!(pieces[1..].iter().all(|piece| piece.fields == Fields::default()));
    }

    #[test]
    fn an_event_that_ends_with_returns_does_not_wait_for_what_may_follow() {
        let (pieces, _) = pieces(&[b"data: a\r\r", b"\ndata: b\r\n\r", b"\n"]);
        let datas: Vec<_> = said(&pieces).into_iter().map(|fields| fields.data).collect();
        assert_eq!(datas, [data("a"), data("b")]);
    }

    #[test]
    fn what_ends_in_the_middle_is_no_event() {
        let (pieces, rest) = pieces(&[b"data: a\n\ndata: half"]);
        assert_eq!(pieces.len(), 1);
        assert_eq!(&rest[..], b"data: half");
    }

    #[test]
    fn what_is_left_over_at_a_clean_end_is_the_last_event() {
        for end in ["", "\n", "\r", "\r\n"] {
            let mut parser = Parser::default();
            parser.push(format!("data: a\n\nevent: b\r\ndata: c{end}").as_bytes());
            while parser.next_piece().expect("small").is_some() {}
            let last = parser.last_piece().expect("it is left over");
            assert_eq!((last.fields.event.as_deref(), last.fields.data), (Some("b"), data("c")), "{end:?}");
            assert_eq!((parser.last_piece(), parser.rest()), (None, Bytes::new()));
        }
    }

    #[test]
    fn an_event_without_end_is_refused_at_the_limit() {
        let mut parser = Parser::with_limit(16);
        parser.push(b"data: 12345678901234567890");
        assert_eq!(parser.next_piece(), Err(TooLarge { max: 16 }));
    }

    #[test]
    fn other_data_leaves_every_other_line_as_it_was() {
        let (pieces, _) = pieces(&[b"id: 3\r\ndata: {\r\ndata: }\r\nfoo: bar\r\n\r\n"]);
        let changed = pieces[0].with_data(&Bytes::from_static(b"{\"b\":2}"));
        assert_eq!(&changed[..], b"id: 3\r\ndata: {\"b\":2}\r\nfoo: bar\r\n\r\n");
        let (again, _) = self::pieces(&[&pieces[0].with_data(&Bytes::from_static(b"1\n2"))]);
        assert_eq!(again[0].fields.data, data("1\n2"));
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_first_line() {
        let (pieces, _) = pieces(&[b"\xEF\xBB\xBFdata: a\n\n"]);
        assert_eq!(pieces[0].fields.data, data("a"));
        assert!(pieces[0].raw.starts_with(BYTE_ORDER_MARK));
    }

    fn stream() -> impl Strategy<Value = Vec<u8>> {
        let part = prop_oneof![
            Just(b"\n".to_vec()),
            Just(b"\r".to_vec()),
            Just(b"\r\n".to_vec()),
            Just(b"data: ".to_vec()),
            Just(b"data".to_vec()),
            Just(b"id: 1".to_vec()),
            Just(b"retry: 10".to_vec()),
            Just(b": comment".to_vec()),
            Just("ü€😀".as_bytes().to_vec()),
            proptest::collection::vec(any::<u8>(), 0..4),
        ];
        proptest::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn all_raw_bytes_in_order_are_the_stream(stream in stream(), cuts in proptest::collection::vec(0usize..200, 0..8)) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(stream.len())).collect();
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|cut| &stream[cut[0]..cut[1]]).collect();
            let (split, rest) = pieces(&chunks);
            let mut joined: Vec<u8> = split.iter().flat_map(|piece| piece.raw.to_vec()).collect();
            joined.extend_from_slice(&rest);
            prop_assert_eq!(&joined, &stream);

            let (whole, _) = pieces(&[&stream]);
            prop_assert_eq!(said(&whole), said(&split));
        }

        #[test]
        fn a_made_message_reads_as_its_data(text in "[^\r\n]{0,40}") {
            let raw = message(&Bytes::from(text.to_owned()));
            let (pieces, _) = pieces(&[&raw]);
            prop_assert_eq!(pieces[0].fields.data.as_deref(), Some(text.as_bytes()));
        }
    }
}
