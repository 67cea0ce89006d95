//! The heads of requests as they came. hyper drops a Content-Length beside Transfer-Encoding, in whichever order they
//! stand, so nothing above it could see that a request has two lengths (decision 0011).

use crate::http::HEADER_BYTES_MAX;

/// Follows the bytes of a connection from head to head. hyper ends a connection at the first byte that it cannot read,
/// so only requests that it reads need to be followed exactly.
#[derive(Debug, Default)]
pub struct Heads {
    part: Part,
    /// The beginning of a line that is not whole yet.
    line: Vec<u8>,
    count: u64,
    /// The first request that has both; it is the last one of its connection.
    ambiguous: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
enum Part {
    Head {
        begun: bool,
        length: Option<u64>,
        is_coded: bool,
    },
    /// This much of a body, or of a chunk of it.
    Content {
        left: u64,
        is_chunk: bool,
    },
    ChunkSize,
    ChunkEnd,
    Trailers,
    Unreadable,
}

impl Default for Part {
    fn default() -> Part {
        Part::Head { begun: false, length: None, is_coded: false }
    }
}

impl Heads {
    pub fn read(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match self.part {
                Part::Unreadable => return,
                Part::Content { left, is_chunk } => {
                    let here = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                    bytes = &bytes[here..];
                    let left = left - here as u64;
                    self.part = match (left, is_chunk) {
                        (0, true) => Part::ChunkEnd,
                        (0, false) => Part::default(),
                        _ => Part::Content { left, is_chunk },
                    };
                }
                _ => {
                    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
                        self.line.extend_from_slice(bytes);
                        if self.line.len() > HEADER_BYTES_MAX {
                            self.part = Part::Unreadable;
                        }
                        return;
                    };
                    let (line, rest) = (&bytes[..end], &bytes[end + 1..]);
                    bytes = rest;
                    self.part = match self.line.is_empty() {
                        true => self.after(line),
                        false => {
                            let mut whole = std::mem::take(&mut self.line);
                            whole.extend_from_slice(line);
                            self.after(&whole)
                        }
                    };
                }
            }
        }
    }

    /// Whether the request of this number, from 1, has a Content-Length beside its Transfer-Encoding.
    pub fn is_ambiguous(&self, number: u64) -> bool {
        self.ambiguous == Some(number) || matches!(self.part, Part::Unreadable)
    }

    /// The part that follows a line.
    fn after(&mut self, line: &[u8]) -> Part {
        let line = line.trim_ascii();
        match self.part {
            Part::Head { begun: false, .. } if line.is_empty() => Part::default(),
            Part::Head { length, is_coded, .. } if line.is_empty() => {
                self.count += 1;
                if is_coded && length.is_some() {
                    self.ambiguous.get_or_insert(self.count);
                }
                match length {
                    _ if is_coded => Part::ChunkSize,
                    None | Some(0) => Part::default(),
                    Some(left) => Part::Content { left, is_chunk: false },
                }
            }
            Part::Head { length, is_coded, .. } => {
                let (name, value) = line.split_at(line.iter().position(|byte| *byte == b':').unwrap_or(0));
                if name.eq_ignore_ascii_case(b"content-length") {
                    return match number(&value[1..], 10) {
                        None => Part::Unreadable,
                        length => Part::Head { begun: true, length, is_coded },
                    };
                }
                let is_coded = is_coded || name.eq_ignore_ascii_case(b"transfer-encoding");
                Part::Head { begun: true, length, is_coded }
            }
            Part::ChunkSize => {
                match number(line.split(|byte| *byte == b';').next().unwrap_or_default(), 16) {
                    None => Part::Unreadable,
                    Some(0) => Part::Trailers,
                    Some(left) => Part::Content { left, is_chunk: true },
                }
            }
            Part::ChunkEnd => Part::ChunkSize,
            Part::Trailers if line.is_empty() => Part::default(),
            other => other,
        }
    }
}

fn number(digits: &[u8], radix: u32) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(digits).ok()?.trim(), radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNKED: &str = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";

    /// Which of the requests have both, as they come in parts of any size.
    fn ambiguous(requests: &str) -> Option<u64> {
        let found = [1, 2, 3, 7, 4096].map(|size| {
            let mut heads = Heads::default();
            requests.as_bytes().chunks(size).for_each(|part| heads.read(part));
            assert!(!matches!(heads.part, Part::Unreadable), "{requests}");
            heads.ambiguous
        });
        assert!(found.iter().all(|other| *other == found[0]), "{requests}: {found:?}");
        found[0]
    }

    #[test]
    fn a_request_with_both_lengths_is_known_in_any_order_and_case() {
        for both in [
            "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
            "transfer-encoding:chunked\r\nX: y\r\nCONTENT-LENGTH:3\r\n",
            "Content-Length: 3\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n",
            "Content-Length: 0\nTransfer-Encoding: chunked\n",
        ] {
            assert_eq!(ambiguous(&format!("\r\nPOST / HTTP/1.1\r\n{both}\r\n")), Some(1), "{both}");
        }
        assert_eq!(ambiguous(CHUNKED), None);
        assert_eq!(ambiguous("GET / HTTP/1.1\r\nX-Content-Length: 3\r\n\r\n"), None);
    }

    #[test]
    fn a_body_is_no_head_whatever_it_says() {
        let text = "POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n";
        let whole = format!("POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n{text}", text.len());
        let chunk = format!("{CHUNKED}{:X};a=b\r\n{text}\r\n0\r\nContent-Length: 3\r\n\r\n", text.len());
        assert_eq!(ambiguous(&format!("{whole}{chunk}GET / HTTP/1.1\r\n\r\n{whole}")), None);
        assert_eq!(ambiguous(&format!("{whole}{chunk}GET / HTTP/1.1\r\n\r\n{text}")), Some(4));
    }

    #[test]
    fn a_head_that_cannot_be_followed_counts_as_both() {
        let mut heads = Heads::default();
        heads.read(format!("{CHUNKED}not a size\r\n").as_bytes());
        assert!(heads.is_ambiguous(1));
        let mut heads = Heads::default();
        heads.read(&vec![b'a'; HEADER_BYTES_MAX + 1]);
        assert!(heads.is_ambiguous(1));
    }
}
