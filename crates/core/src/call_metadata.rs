//! Facts that come with a call beside its arguments. They are counted and traced; nothing is decided by them.

/// As far as a door can tell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallMetadata {
    /// How often the client library says that it has sent this call before.
    pub retries: u32,
    /// The caller's span.
    pub trace: Option<TraceParent>,
    /// The model that is asked.
    pub model: Option<String>,
}

/// W3C `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    pub trace: u128,
    pub span: u64,
    pub sampled: bool,
}

impl TraceParent {
    /// `00-TRACE-SPAN-FLAGS`. A later version may have more behind; what is not understood is as good as absent.
    pub fn parse(text: &str) -> Option<TraceParent> {
        let mut parts = text.trim().split('-');
        let mut hexadecimal = |digits: usize| {
            let part = parts.next()?;
            let lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            (part.len() == digits && part.bytes().all(lower)).then_some(part)
        };
        let version = hexadecimal(2)?;
        let (trace, span, flags) = (hexadecimal(32)?, hexadecimal(16)?, hexadecimal(2)?);
        if version == "ff" || version == "00" && parts.next().is_some() {
            return None;
        }
        let trace = u128::from_str_radix(trace, 16).ok().filter(|trace| *trace != 0)?;
        let span = u64::from_str_radix(span, 16).ok().filter(|span| *span != 0)?;
        let flags = u8::from_str_radix(flags, 16).ok()?;
        Some(TraceParent { trace, span, sampled: flags & 1 == 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceparent_is_read_as_the_standard_says() {
        let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let (trace, span) = (0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736, 0x00f0_67aa_0ba9_02b7);
        assert_eq!(TraceParent::parse(text), Some(TraceParent { trace, span, sampled: true }));
        assert!(!TraceParent::parse(&text.replace("-01", "-00")).unwrap().sampled);
        assert!(TraceParent::parse(&format!("{}-more", text.replacen("00", "01", 1))).is_some());
        for bad in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceParent::parse(bad), None, "{bad}");
        }
    }
}
