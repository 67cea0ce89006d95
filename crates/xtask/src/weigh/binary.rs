//! The relocations of a binary: what the loader goes through before `main`, each time.

use crate::project::Result;

/// `SHT_RELA`, `SHT_REL` and `SHT_RELR`.
const KINDS: [u64; 3] = [4, 9, 19];

/// Sums the sections of relocations of a little-endian 64-bit ELF file.
pub fn relocation_bytes(file: &[u8]) -> Result<u64> {
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return Err("the binary is no little-endian 64-bit ELF file".into());
    }
    let (at, size, count) = (number(file, 0x28, 8)?, number(file, 0x3a, 2)?, number(file, 0x3c, 2)?);
    let mut bytes = 0;
    for section in 0..count {
        let header = at + section * size;
        if KINDS.contains(&number(file, header + 4, 4)?) {
            bytes += number(file, header + 0x20, 8)?;
        }
    }
    Ok(bytes)
}

fn number(file: &[u8], at: u64, length: usize) -> Result<u64> {
    let at = usize::try_from(at)?;
    let bytes = file.get(at..at + length).ok_or("the binary is cut off")?;
    Ok(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sections_of_relocations_are_summed() {
        let mut file = b"\x7fELF\x02\x01".to_vec();
        file.resize(0x40 + 3 * 0x40, 0);
        (file[0x28], file[0x3a], file[0x3c]) = (0x40, 0x40, 3);
        for (section, (kind, bytes)) in [(1, 100), (4, 24), (19, 8)].into_iter().enumerate() {
            let header = 0x40 + section * 0x40;
            (file[header + 4], file[header + 0x20]) = (kind, bytes);
        }
        assert_eq!(relocation_bytes(&file).expect("it is whole"), 32);
        file.truncate(0x80);
        assert!(relocation_bytes(&file).is_err());
    }
}
