//! A name as words: `create_issue`, `create-issue`, `create.issue`, `createIssue` and `createHTTPIssue` alike.

/// In lower case.
pub fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let characters: Vec<char> = name.chars().collect();
    for (i, &character) in characters.iter().enumerate() {
        if !character.is_alphanumeric() {
            words.push(String::new());
            continue;
        }
        let after_lower = i > 0 && (characters[i - 1].is_lowercase() || characters[i - 1].is_ascii_digit());
        let ends_acronym = i > 0
            && characters[i - 1].is_uppercase()
            && characters.get(i + 1).is_some_and(|next| next.is_lowercase());
        if character.is_uppercase() && (after_lower || ends_acronym) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.extend(character.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_however_they_are_joined() {
        assert_eq!(words("createHTTPIssue_v2-now.x"), ["create", "http", "issue", "v2", "now", "x"]);
        assert_eq!(words("__"), Vec::<String>::new());
    }
}
