//! Links `semel` at a fixed address. A position-independent executable has tens of thousands of relocations to apply
//! before `main`, each touching a page: more than half of what a replayed call takes.

#[allow(clippy::disallowed_methods, clippy::print_stdout, reason = "how a build script asks and answers")]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let linux = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux");
    let gnu = std::env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|env| env == "gnu");
    if linux && gnu {
        println!("cargo::rustc-link-arg-bin=semel=-no-pie");
    }
}
