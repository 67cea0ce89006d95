//! The checksum behind everything that is stored: the first eight bytes of SHA-256 over the place that the bytes belong
//! to and the bytes themselves. A disk that changes a bit, or gives the bytes of another place, is found out on reading.

use semel_core::digest::Digest;

const BYTES: usize = 8;

/// Adds the checksum. The place is whatever else a store keeps of it: its key, its columns.
pub fn seal(place: &[&[u8]], mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = checksum(place, &bytes);
    bytes.extend_from_slice(&sum);
    bytes
}

/// The bytes without their checksum. `None`: they are damaged.
pub fn open<'b>(place: &[&[u8]], sealed: &'b [u8]) -> Option<&'b [u8]> {
    let (bytes, sum) = sealed.split_last_chunk::<BYTES>()?;
    (checksum(place, bytes) == *sum).then_some(bytes)
}

fn checksum(place: &[&[u8]], bytes: &[u8]) -> [u8; BYTES] {
    let parts: Vec<&[u8]> = place.iter().copied().chain([bytes]).collect();
    Digest::of(&parts).short().to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_and_every_other_place_is_found_out() {
        let sealed = seal(&[b"key"], b"value".to_vec());
        assert_eq!(open(&[b"key"], &sealed), Some(&b"value"[..]));
        assert_eq!(open(&[b"other"], &sealed), None);
        for bit in 0..sealed.len() * 8 {
            let mut damaged = sealed.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(open(&[b"key"], &damaged), None, "{bit}");
        }
        for length in 0..sealed.len() {
            assert_eq!(open(&[b"key"], &sealed[..length]), None, "{length}");
        }
    }
}
