//! How a caller learns which answer to follow.

use super::live_answer::AnswerReader;
use semel_core::ids::EffectId;
use tokio::sync::mpsc;

/// An answer that is coming, for its caller.
#[derive(Debug)]
pub struct Attachment {
    pub reader: AnswerReader,
    /// `None` where nothing is recorded.
    pub effect: Option<EffectId>,
    /// It is another call's attempt.
    pub joined: bool,
}

/// Each attempt of a call has one. Once the receiver is gone, nobody follows.
pub type AttachmentSender = mpsc::UnboundedSender<Attachment>;

#[derive(Debug)]
pub struct AttachmentReceiver(mpsc::UnboundedReceiver<Attachment>);

pub fn channel() -> (AttachmentSender, AttachmentReceiver) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (sender, AttachmentReceiver(receiver))
}

impl AttachmentReceiver {
    /// The next one; for ever, if there is none.
    pub async fn next(&mut self) -> Attachment {
        match self.0.recv().await {
            Some(attachment) => attachment,
            None => std::future::pending().await,
        }
    }

    /// The newest of those that are there.
    pub fn newest(&mut self) -> Option<Attachment> {
        std::iter::from_fn(|| self.0.try_recv().ok()).last()
    }
}
