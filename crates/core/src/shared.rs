//! Shared values in the stored form: the same bytes as the value itself, since minicbor knows no [`Arc`].

use minicbor::decode::{self, Decoder};
use minicbor::encode::{self, Encoder, Write};
use minicbor::{Decode, Encode};
use std::sync::Arc;

pub(crate) fn encode<C, T: Encode<C>, W: Write>(
    value: &Arc<T>,
    encoder: &mut Encoder<W>,
    context: &mut C,
) -> Result<(), encode::Error<W::Error>> {
    T::encode(value, encoder, context)
}

pub(crate) fn decode<'b, C, T: Decode<'b, C>>(
    decoder: &mut Decoder<'b>,
    context: &mut C,
) -> Result<Arc<T>, decode::Error> {
    T::decode(decoder, context).map(Arc::new)
}
