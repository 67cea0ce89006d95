//! Closed sets of words: each variant of an enum and its stable word, in both directions from one list.

/// Gives an enum `ALL`, `word`, `parse` and `Display`. A variant that is missing from the list does not compile.
#[macro_export]
macro_rules! word_table {
    ($type:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        impl $type {
            pub const ALL: [$type; [$($word),+].len()] = [$($type::$variant),+];

            pub fn word(self) -> &'static str {
                match self {
                    $($type::$variant => $word,)+
                }
            }

            pub fn parse(word: &str) -> Option<$type> {
                $type::ALL.into_iter().find(|one| one.word() == word)
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.word())
            }
        }
    };
}
