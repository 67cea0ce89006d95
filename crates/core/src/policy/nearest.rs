//! "Did you mean": the known word nearest to a misspelt one.

/// A word further away than a third of its length is another word, not a typing error.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Names the nearest of the known words, or else all of them.
pub fn suggest(word: &str, known: &[&str]) -> String {
    match nearest(word, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are: {}", known.join(", ")),
    }
}

/// Edits between two words; two swapped neighbours are one edit, as that is how people mistype.
fn distance(a: &str, b: &str) -> usize {
    let [a, b] = [a, b].map(|word| word.to_lowercase().chars().take(64).collect::<String>());
    strsim::osa_distance(&a, &b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_is_near_and_another_word_is_not() {
        let words = ["match", "class", "content", "window", "key"];
        assert_eq!(nearest("macth", words), Some("match"));
        assert_eq!(nearest("contents", words), Some("content"));
        assert_eq!(nearest("kye", words), Some("key"));
        assert_eq!(nearest("zebra", words), None);
        assert_eq!(nearest("", words), None);
    }
}
