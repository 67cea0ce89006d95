pub mod rule;
pub mod expression { #[derive(Debug,Clone)] pub struct Expression; #[derive(Debug,Clone)] pub struct Template; }
#[derive(Debug,Clone,Copy,PartialEq,Eq)] pub enum Mode { Observe, Guard, Strict }
impl rule::Rule { pub fn tier(&self) -> crate::class::Tier { crate::class::Tier::Opaque } }
