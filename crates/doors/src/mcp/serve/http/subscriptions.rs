//! Who has subscribed to which resource of a server that many clients share. The server knows one subscriber, so it is
//! told of the first and of the last of them, and what it says of a resource reaches those that asked for it.

use std::collections::{HashMap, HashSet};

/// What the names of one client's resources may take together. More is a storm.
const BYTES_MAX: usize = 1 << 20;

#[derive(Debug, Default)]
pub struct Subscriptions {
    /// Clients by the resource's name.
    by_uri: HashMap<String, HashSet<String>>,
    bytes: HashMap<String, usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    Subscription,
    /// It was there, or there was none to add.
    Nothing,
}

/// It has more subscriptions than anybody needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMany;

impl Subscriptions {
    pub fn has(&self, client: &str, uri: &str) -> bool {
        self.by_uri.get(uri).is_some_and(|clients| clients.contains(client))
    }

    pub fn add(&mut self, client: &str, uri: &str) -> Result<Added, TooMany> {
        if self.has(client, uri) {
            return Ok(Added::Nothing);
        }
        let bytes = self.bytes.entry(client.to_owned()).or_default();
        if *bytes + cost(uri) > BYTES_MAX {
            return Err(TooMany);
        }
        *bytes += cost(uri);
        self.by_uri.entry(uri.to_owned()).or_default().insert(client.to_owned());
        Ok(Added::Subscription)
    }

    /// Whether nobody is left who wants to hear of it.
    pub fn remove(&mut self, client: &str, uri: &str) -> bool {
        let Some(clients) = self.by_uri.get_mut(uri) else { return true };
        if clients.remove(client)
            && let Some(bytes) = self.bytes.get_mut(client)
        {
            *bytes -= cost(uri);
            if *bytes == 0 {
                self.bytes.remove(client);
            }
        }
        let nobody = clients.is_empty();
        if nobody {
            self.by_uri.remove(uri);
        }
        nobody
    }

    /// The client is gone. Gives the resources that nobody wants to hear of any more.
    pub fn left(&mut self, client: &str) -> Vec<String> {
        if !self.bytes.contains_key(client) {
            return Vec::new();
        }
        let its: Vec<String> = self.by_uri.keys().filter(|uri| self.has(client, uri)).cloned().collect();
        its.into_iter().filter(|uri| self.remove(client, uri)).collect()
    }
}

/// An entry takes room beside its name.
fn cost(uri: &str) -> usize {
    uri.len() + 64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_several_ends_a_subscription() {
        let mut all = Subscriptions::default();
        for client in ["ann", "bob", "bob"] {
            all.add(client, "file:///a").unwrap();
        }
        all.add("bob", "file:///b").unwrap();
        assert!(all.has("ann", "file:///a") && !all.has("ann", "file:///b"));
        assert!(!all.remove("carl", "file:///a") && !all.remove("ann", "file:///a"));
        assert!(!all.has("ann", "file:///a") && all.has("bob", "file:///a"));
        let mut gone = all.left("bob");
        gone.sort();
        assert_eq!(gone, ["file:///a", "file:///b"]);
        assert!(all.by_uri.is_empty() && all.bytes.is_empty() && all.left("bob").is_empty());
    }

    #[test]
    fn one_client_has_no_more_than_fits() {
        let mut all = Subscriptions::default();
        let added = (0..BYTES_MAX).map_while(|n| all.add("ann", &n.to_string()).ok()).count();
        assert!((1_000..BYTES_MAX / 64).contains(&added), "{added}");
        assert!(all.add("ann", &"x".repeat(BYTES_MAX)).is_err() && all.add("bob", "x").is_ok());
        assert!(all.left("ann").len() == added && all.add("ann", "x").is_ok());
    }
}
