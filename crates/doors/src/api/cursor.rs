//! Where a list goes on, as clients see it. A place in the ledger counts the effects of all tenants, so it is sealed,
//! and opens for the tenant that it was given to.

use super::problem::Problem;
use semel_core::digest::Secret;
use semel_ledger::store::Cursor;

pub fn sealed(secret: &Secret, tenant: &str, place: Cursor) -> String {
    let mark = mark(secret, tenant, place.0);
    format!("{mark:016x}{:016x}", place.0 ^ pad(secret, mark))
}

pub fn opened(secret: &Secret, tenant: &str, text: &str) -> Result<Cursor, Problem> {
    let number = |hex: &str| u64::from_str_radix(hex, 16).ok();
    let halves = text.split_at_checked(16).filter(|(_, place)| place.len() == 16);
    let numbers = halves.and_then(|(mark, place)| Some((number(mark)?, number(place)?)));
    let (known, hidden) =
        numbers.ok_or_else(|| Problem::bad("cursor must be the `next` of an earlier page"))?;
    let place = hidden ^ pad(secret, known);
    match known == mark(secret, tenant, place) {
        true => Ok(Cursor(place)),
        false => Err(Problem::not_found("cursor")),
    }
}

/// The mark of a cursor that was made here, for this tenant.
fn mark(secret: &Secret, tenant: &str, place: u64) -> u64 {
    secret.mac("cursor", &[tenant.as_bytes(), &place.to_be_bytes()]).short()
}

/// The mask of the place: another one for each mark.
fn pad(secret: &Secret, mark: u64) -> u64 {
    secret.mac("cursor pad", &[&mark.to_be_bytes()]).short()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_tells_nothing_and_opens_for_its_tenant_alone() {
        let secret = Secret::new([7; 32]);
        let text = sealed(&secret, "a", Cursor(41));
        assert_eq!(opened(&secret, "a", &text).unwrap(), Cursor(41));
        assert!(opened(&secret, "b", &text).is_err());
        assert!(opened(&Secret::new([8; 32]), "a", &text).is_err());
        let next = sealed(&secret, "a", Cursor(42));
        assert_ne!(text[16..24], next[16..24], "neighbours have nothing in common");
        for bad in ["", "29", &text[..31], &format!("{text}0"), &"ü".repeat(16), &"f".repeat(32)] {
            assert!(opened(&secret, "a", bad).is_err(), "{bad}");
        }
    }
}
