//! Which read tool of a server shows whether a call of another of its tools has happened.
//!
//! Nobody says so but a rule with a probe; all else is told by names and arguments. A wrong tool shows nothing, and who
//! sees nothing there takes it for not done, so a tool that speaks of something else is not named at all.

use super::tool_name::{Surname, ToolName, is_plural, stem, words};
use super::tools::{Definition, Tools};

/// What was called.
#[derive(Debug, Clone, Copy)]
pub struct Called<'a> {
    pub server: &'a str,
    pub tool: &'a str,
    /// The names of the arguments that it was called with.
    pub given: &'a [&'a str],
    /// The tool of the same server that its rule asks whether it happened.
    pub probe: Option<&'a str>,
}

/// What there is to look with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookWith<'a> {
    Tool(&'a str),
    /// None of the tools that the server lists seems to show it.
    Nothing,
    /// The server has not said what tools it has.
    NotKnown,
}

pub fn to_check<'a>(
    tools: &'a Tools,
    called: &Called<'_>,
    is_read: impl Fn(&Definition) -> bool,
) -> LookWith<'a> {
    match find(tools, called, is_read) {
        Some(tool) => LookWith::Tool(tool),
        None if tools.get(called.tool).is_some() => LookWith::Nothing,
        None => LookWith::NotKnown,
    }
}

fn find<'a>(tools: &'a Tools, called: &Called<'_>, is_read: impl Fn(&Definition) -> bool) -> Option<&'a str> {
    if let Some(probe) = called.probe.and_then(|probe| tools.get(probe)).filter(|probe| is_plain(&probe.name))
    {
        return Some(&probe.name);
    }
    let surname = Surname::of(called.server, tools);
    let candidates = tools.iter().filter(|tool| tool.name != called.tool && is_plain(&tool.name));
    let candidates: Vec<(&Definition, ToolName)> = candidates
        .filter(|tool| is_read(tool))
        .map(|tool| (tool.as_ref(), ToolName::read(&tool.name, &surname).of_read()))
        .collect();
    let name = ToolName::read(called.tool, &surname);
    meanings(&name, called.given).into_iter().find_map(|meaning| {
        let rated = candidates.iter().filter_map(|(tool, other)| Some((meaning.rate(tool, other)?, *tool)));
        // Of equals the first: servers list the plain `get` and `list` before the special ones.
        rated.min_by_key(|(rate, _)| *rate).map(|(_, tool)| tool.name.as_str())
    })
}

/// A name stands in semel's own words, and a server may have put words of its own into it.
fn is_plain(name: &str) -> bool {
    name.chars().all(|c| c.is_alphanumeric() || "_-./:".contains(c))
}

/// What a call may have changed, by one way to read its name.
#[derive(Debug)]
struct Meaning<'a> {
    act: Option<&'a str>,
    thing: &'a str,
    /// Of what kind the thing is, and where.
    beside: Vec<&'a str>,
    place: &'a [String],
    /// Whether a tool may be silent about these.
    may_miss: bool,
    copies: bool,
    given: &'a [&'a str],
}

/// The likeliest first.
fn meanings<'a>(name: &'a ToolName, given: &'a [&'a str]) -> Vec<Meaning<'a>> {
    let copies = name.act.as_deref().is_some_and(|act| COPIES.contains(&act));
    let meaning = |things: &'a [String], place: &'a [String], may_miss: bool| {
        let (thing, kinds) = things.split_last()?;
        let beside = kinds.iter().chain(place).map(String::as_str).collect();
        Some(Meaning { act: name.act.as_deref(), thing, beside, place, may_miss, copies, given })
    };
    let (things, place) = (name.things.as_slice(), name.place.as_slice());
    let makes = matches!(name.verb.as_deref(), Some("create" | "post" | "send" | "new" | "make" | "insert"));
    // `set_issue_priority`, `add_issue_label`: what is given along with the call is not what it makes.
    let is_given = |thing: &String| given.iter().any(|argument| is_value_or_id(argument, thing));
    let of_what = match things.split_last() {
        Some((last, rest)) if !makes && is_given(last) => rest,
        _ => &[],
    };
    let all = [
        meaning(things, place, false),
        meaning(of_what, place, true),
        meaning(things, place, true),
        // `subscribe_to_issue`.
        meaning(place, &[], true).filter(|_| name.verb.is_none()),
    ];
    all.into_iter().flatten().collect()
}

fn is_value_or_id(argument: &str, thing: &str) -> bool {
    let words = words(argument);
    let words: Vec<String> = words.iter().map(|word| stem(word)).filter(|word| word != "id").collect();
    words == [thing]
}

/// How much speaks against a tool, the weightiest first.
type Rate = (u8, usize, u8);

impl Meaning<'_> {
    /// `None`: it shows something else, or cannot be called with what is known.
    fn rate(&self, tool: &Definition, other: &ToolName) -> Option<Rate> {
        let (sides, mut things): (Vec<&str>, Vec<&str>) =
            other.things.iter().map(String::as_str).partition(|word| self.is_side(word));
        if things.is_empty() {
            things = sides.clone();
        }
        let last = *things.last()?;
        let is_act = self.act.is_some_and(|act| last == act);
        let is_thing = things.iter().any(|thing| is_same(thing, self.thing));
        let is_at_place = self.place.iter().any(|place| is_same(last, place));
        if !is_act && !(is_thing && (is_same(last, self.thing) || is_at_place)) {
            return None;
        }
        let speaks_of = |word: &&str| things.iter().any(|thing| is_same(thing, word));
        let missed = if is_act { 0 } else { self.beside.iter().filter(|word| !speaks_of(word)).count() };
        let is_known = |word: &str| {
            is_same(word, self.thing)
                || self.act == Some(word)
                || self.beside.iter().any(|beside| is_same(word, beside))
        };
        let places = other.place.iter().map(String::as_str);
        let (strange, medial): (Vec<&str>, Vec<&str>) =
            things.iter().copied().filter(|word| !is_known(word)).partition(|word| !MEDIA.contains(word));
        // The comments of something else are others.
        if missed > 0 && (!self.may_miss || !strange.is_empty()) {
            return None;
        }
        let against = 2 * (missed + strange.len())
            + sides.iter().filter(|word| !PLAIN_SIDES.contains(word)).count()
            + places.filter(|word| !is_known(word)).count()
            + usize::from(!is_act && !things.contains(&self.thing))
            + 4 * medial.len()
            + 6 * usize::from(tool.is_deprecated);
        Some((u8::from(!is_act), against, UNFIT_MAX - self.fit(tool, other)?))
    }

    fn is_side(&self, word: &str) -> bool {
        let is_meant = is_same(word, self.thing) || self.beside.contains(&word);
        !is_meant && (SIDES.contains(&word) || PLAIN_SIDES.contains(&word))
    }

    /// How well a tool serves whoever has the arguments of the call and no others; `None`: not at all. What was created
    /// has an id that nobody knows yet; what to search for, or where, is known to whoever made the call. Schemas that
    /// do not say what they require are many, so a tool that reads one thing comes after those that look through all.
    fn fit(&self, tool: &Definition, other: &ToolName) -> Option<u8> {
        let has = |argument: &String| self.given.iter().any(|given| self.is_same_argument(given, argument));
        let name = words(&tool.name);
        let is_many = |word: &String| is_plural(word) && thing_of(other) == Some(stem(word).as_str());
        let looks_through = name.iter().any(|word| SEARCHES.contains(&word.as_str()) || is_many(word));
        let needs = || tool.required.iter().filter(|argument| !CHOSEN.contains(&argument.as_str()));
        let is_unknown = |argument: &String| (self.copies || !has(argument)) && self.is_id_of_it(argument);
        if needs().any(is_unknown) {
            return None;
        }
        let knows = needs().all(has);
        Some(match (knows, looks_through) {
            (true, false) if !tool.required.is_empty() => 3,
            (true, false) if !tool.arguments.iter().all(has) => 0,
            (true, _) => 2,
            (false, _) => 1,
        })
    }

    /// `id` of an issue is the same as `issueId`.
    fn is_same_argument(&self, given: &str, wanted: &str) -> bool {
        let bare = |argument: &str| {
            let words = words(argument).iter().map(|word| stem(word)).collect::<Vec<_>>();
            words.into_iter().filter(|word| word != self.thing).collect::<Vec<_>>()
        };
        given == wanted || (!bare(given).is_empty() && bare(given) == bare(wanted))
    }

    fn is_id_of_it(&self, argument: &str) -> bool {
        let words: Vec<String> = words(argument).iter().map(|word| stem(word)).collect();
        let is_name = |word: &String| IDS.contains(&word.as_str());
        let is_of_it = |word: &String| word == self.thing || self.beside.contains(&word.as_str());
        words.iter().any(is_name) && words.iter().all(|word| is_name(word) || is_of_it(word))
    }
}

/// What a read shows, or shows a side of.
fn thing_of(read: &ToolName) -> Option<&str> {
    let is_side = |word: &&str| SIDES.contains(word) || PLAIN_SIDES.contains(word);
    read.things.iter().rev().map(String::as_str).find(|word| !is_side(word))
}

/// One word, or two for the same.
fn is_same(one: &str, other: &str) -> bool {
    one == other || AKIN.iter().any(|akin| akin.contains(&one) && akin.contains(&other))
}

const UNFIT_MAX: u8 = 3;

/// What is said in a place is its history.
const AKIN: [&[&str]; 6] = [
    &["message", "history"],
    &["mail", "email"],
    &["directory", "folder"],
    &["user", "member", "membership"],
    &["repo", "repository"],
    &["doc", "document"],
];

/// What a tool shows of a thing: all that one asks for, or less.
const PLAIN_SIDES: [&str; 6] = ["content", "detail", "text", "full", "data", "recent"];
const SIDES: [&str; 11] = [
    "info", "status", "metadata", "stat", "summary", "tree", "markdown", "count", "size", "history",
    "multiple",
];

const MEDIA: [&str; 7] = ["media", "image", "audio", "video", "binary", "blob", "screenshot"];

const SEARCHES: [&str; 5] = ["list", "search", "find", "query", "history"];

/// The id that these are called with is that of the thing that was there before.
const COPIES: [&str; 3] = ["duplicate", "copy", "clone"];

const IDS: [&str; 6] = ["id", "number", "key", "uuid", "slug", "identifier"];

/// Arguments that whoever looks chooses.
const CHOSEN: [&str; 2] = ["method", "action"];

#[cfg(test)]
mod tests;
