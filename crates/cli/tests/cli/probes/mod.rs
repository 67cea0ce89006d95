//! Questions that rules ask: probes and confirms over HTTP, through MCP tools and by commands, from every door. Judged
//! by what happened in the world, and by what the asked one heard.

mod confirms;
mod outcomes;
mod reach;
