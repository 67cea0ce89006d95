//! The wire format of Protocol Buffers, as far as records need it: numbered fields, each a number or a run of bytes.
//!
//! Chosen over JSON because every byte of a record is written, checksummed and flushed twice, and over a format of our
//! own because this one passes over fields that it does not know, and `protoc --decode_raw` reads it anywhere.
//! Written by hand because that is all of it.

/// The kind of a field: its low three bits on the wire.
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;
const FIXED32: u64 = 5;

/// Why bytes are no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DecodeError {
    Damaged,
    /// A variant that only a newer semel knows.
    Unknown,
}

#[derive(Debug, Default)]
pub(super) struct Out(Vec<u8>);

impl Out {
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Out(Vec::with_capacity(bytes))
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.0
    }

    pub(super) fn number(&mut self, field: u64, value: u64) {
        self.varint(field << 3 | VARINT);
        self.varint(value);
    }

    pub(super) fn fixed(&mut self, field: u64, value: u64) {
        self.varint(field << 3 | FIXED64);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn flag(&mut self, field: u64, value: bool) {
        if value {
            self.number(field, 1);
        }
    }

    pub(super) fn bytes(&mut self, field: u64, value: &[u8]) {
        self.varint(field << 3 | BYTES);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    pub(super) fn text(&mut self, field: u64, value: &str) {
        self.bytes(field, value.as_bytes());
    }

    /// A message inside a message. Its length stands before it and is known after it: one byte is kept for it, and the
    /// few messages that need more are moved.
    pub(super) fn message(&mut self, field: u64, write: impl FnOnce(&mut Out)) {
        self.varint(field << 3 | BYTES);
        let at = self.0.len();
        self.0.push(0);
        write(self);
        let mut length = self.0.len() - at - 1;
        let mut place = at;
        while length >= 0x80 {
            self.0[place] = length as u8 | 0x80;
            length >>= 7;
            place += 1;
            self.0.insert(place, 0);
        }
        self.0[place] = length as u8;
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

/// One field of a message.
#[derive(Debug, Clone, Copy)]
pub(super) enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    pub(super) fn number(self) -> Result<u64, DecodeError> {
        match self {
            Value::Number(value) => Ok(value),
            Value::Bytes(_) => Err(DecodeError::Damaged),
        }
    }

    pub(super) fn small(self) -> Result<u32, DecodeError> {
        u32::try_from(self.number()?).map_err(|_| DecodeError::Damaged)
    }

    pub(super) fn flag(self) -> Result<bool, DecodeError> {
        Ok(self.number()? != 0)
    }

    pub(super) fn bytes(self) -> Result<&'a [u8], DecodeError> {
        match self {
            Value::Bytes(bytes) => Ok(bytes),
            Value::Number(_) => Err(DecodeError::Damaged),
        }
    }

    pub(super) fn array<const N: usize>(self) -> Result<[u8; N], DecodeError> {
        self.bytes()?.try_into().map_err(|_| DecodeError::Damaged)
    }

    pub(super) fn str(self) -> Result<&'a str, DecodeError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| DecodeError::Damaged)
    }

    pub(super) fn text(self) -> Result<String, DecodeError> {
        self.str().map(str::to_owned)
    }

    pub(super) fn message(self) -> Result<MessageFields<'a>, DecodeError> {
        self.bytes().map(MessageFields)
    }
}

/// The fields of a message, in the order in which they were written.
#[derive(Debug, Clone, Copy)]
pub(super) struct MessageFields<'a>(pub(super) &'a [u8]);

impl<'a> MessageFields<'a> {
    /// The next field and its number.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Value<'a>)>, DecodeError> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let key = self.varint()?;
        let value = match key & 7 {
            VARINT => Value::Number(self.varint()?),
            FIXED64 => Value::Number(u64::from_le_bytes(self.take(8)?.try_into().expect("taken as eight"))),
            BYTES => {
                let length = usize::try_from(self.varint()?).map_err(|_| DecodeError::Damaged)?;
                Value::Bytes(self.take(length)?)
            }
            // Never written by us; known so that it can be passed over.
            FIXED32 => Value::Bytes(self.take(4)?),
            _ => return Err(DecodeError::Damaged),
        };
        Ok(Some((key >> 3, value)))
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(DecodeError::Damaged)?;
        self.0 = rest;
        Ok(taken)
    }

    #[inline]
    fn varint(&mut self) -> Result<u64, DecodeError> {
        match self.0 {
            // Most are lengths and numbers of fields.
            [byte, rest @ ..] if *byte < 0x80 => {
                self.0 = rest;
                Ok(u64::from(*byte))
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Result<u64, DecodeError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(DecodeError::Damaged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_longer_than_its_length_byte_is_moved() {
        for length in [0, 1, 127, 128, 20_000] {
            let mut out = Out::default();
            out.message(1, |out| out.bytes(2, &vec![7; length]));
            out.number(3, u64::MAX);
            let bytes = out.finish();
            let mut fields = MessageFields(&bytes);
            let (number, value) = fields.next().unwrap().unwrap();
            let (inner, text) = value.message().unwrap().next().unwrap().unwrap();
            assert_eq!((number, inner, text.bytes().unwrap().len()), (1, 2, length));
            let (number, value) = fields.next().unwrap().unwrap();
            assert_eq!((number, value.number()), (3, Ok(u64::MAX)));
            assert!(fields.next().unwrap().is_none());
        }
    }

    #[test]
    fn a_message_that_was_cut_is_damaged() {
        let mut out = Out::default();
        out.bytes(1, b"text");
        let bytes = out.finish();
        for length in 1..bytes.len() {
            assert_eq!(MessageFields(&bytes[..length]).next().unwrap_err(), DecodeError::Damaged, "{length}");
        }
    }
}
