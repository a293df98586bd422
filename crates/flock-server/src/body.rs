//! Bodies of requests: how much of them may be in memory at once, and how slowly they may come.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http_body_util::BodyExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::problem::{Code, Problem};

/// Room is counted in pieces of a kibibyte: the count of a semaphore is a `u32`.
const PIECE: usize = 1 << 10;
/// Bytes come in pieces of any size, down to one; they are kept in blocks of this one.
const BLOCK: usize = 64 << 10;

/// Room for so many bytes in all.
pub fn room_for(bytes: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(bytes.div_ceil(PIECE).min(Semaphore::MAX_PERMITS)))
}

/// What one request holds of the room for bodies. It is given back when this is dropped.
pub struct Room {
    all: Arc<Semaphore>,
    held: Option<OwnedSemaphorePermit>,
}

impl Room {
    /// None so far.
    pub fn new(all: &Arc<Semaphore>) -> Room {
        Room { all: all.clone(), held: None }
    }

    /// Makes sure of room for so many bytes, or says that others have it.
    pub fn hold(&mut self, bytes: usize) -> Result<(), Problem> {
        let held = self.held.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let more = bytes.div_ceil(PIECE).saturating_sub(held);
        if more == 0 {
            return Ok(());
        }
        let more = u32::try_from(more).ok().and_then(|n| self.all.clone().try_acquire_many_owned(n).ok());
        let Some(more) = more else {
            let problem =
                Problem::new(Code::Busy, "other requests are sending so much that there is no room for this body");
            return Err(problem.remedy("send it again after Retry-After seconds"));
        };
        match &mut self.held {
            Some(held) => held.merge(more),
            none => *none = Some(more),
        }
        Ok(())
    }
}

/// A body in blocks. As a reader it lets go of each block that has been read, so that a graph and its text are not in memory whole at
/// the same time.
#[derive(Default)]
pub struct Blocks {
    blocks: VecDeque<Vec<u8>>,
    read: usize, // of the first block
    len: usize,
}

impl Blocks {
    fn push(&mut self, mut bytes: &[u8]) {
        self.len += bytes.len();
        while !bytes.is_empty() {
            if self.blocks.back().is_none_or(|b| b.len() == BLOCK) {
                self.blocks.push_back(Vec::with_capacity(BLOCK));
            }
            let Some(block) = self.blocks.back_mut() else { return };
            let (now, later) = bytes.split_at(bytes.len().min(BLOCK - block.len()));
            block.extend_from_slice(now);
            bytes = later;
        }
    }

    /// All of it in one piece.
    pub fn into_vec(self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.len);
        self.blocks.iter().for_each(|block| all.extend_from_slice(block));
        all
    }
}

impl Read for Blocks {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(block) = self.blocks.front() else { return Ok(0) };
        let rest = &block[self.read..];
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        self.read += len;
        if self.read == block.len() {
            self.blocks.pop_front();
            self.read = 0;
        }
        Ok(len)
    }
}

/// Reads a body of at most `most` bytes. Each piece must come within `patience`, and all of it at `rate` bytes a second or faster, with
/// `patience` on top: a slow line is waited for, a client that has stopped or drips is not.
pub async fn read(
    body: Body,
    most: usize,
    patience: Duration,
    rate: usize,
    room: &mut Room,
) -> Result<Blocks, Problem> {
    let mut body = body;
    let mut blocks = Blocks::default();
    let begin = Instant::now();
    loop {
        let earned = Duration::from_secs_f64(blocks.len as f64 / rate.max(1) as f64);
        let until = (begin + patience + earned).min(Instant::now() + patience);
        let frame = match timeout_at(until, body.frame()).await {
            Err(_) => {
                let problem =
                    Problem::new(Code::TooSlow, format!("the body came too slowly: {} bytes so far", blocks.len));
                return Err(problem.remedy(format!("send at least {rate} bytes a second, without long pauses")));
            }
            Ok(None) => return Ok(blocks),
            Ok(Some(Err(_))) => return Err(Problem::bad("the body broke off").remedy("send it again")),
            Ok(Some(Ok(frame))) => frame,
        };
        if let Some(data) = frame.data_ref() {
            if data.len() > most - blocks.len {
                let problem = Problem::new(Code::TooLarge, format!("the body is larger than {most} bytes"));
                return Err(problem.remedy("send less at once"));
            }
            room.hold(blocks.len + data.len())?;
            blocks.push(data);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use axum::body::Bytes;
    use hyper::body::Frame;

    /// A client that sends a piece every so often and stops after some.
    struct DrippingBody {
        pieces: usize,
        size: usize,
        pause: Duration,
        next: Pin<Box<tokio::time::Sleep>>,
        stalls: bool,
    }

    impl hyper::body::Body for DrippingBody {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            if self.pieces == 0 {
                return if self.stalls { Poll::Pending } else { Poll::Ready(None) };
            }
            std::task::ready!(self.next.as_mut().poll(context));
            let again = Instant::now() + self.pause;
            self.next.as_mut().reset(again);
            self.pieces -= 1;
            Poll::Ready(Some(Ok(Frame::data(Bytes::from(vec![b'x'; self.size])))))
        }
    }

    async fn sent(pieces: usize, size: usize, pause_ms: u64, stalls: bool) -> (Result<usize, Code>, Duration) {
        let pause = Duration::from_millis(pause_ms);
        let next = Box::pin(tokio::time::sleep(pause));
        let body = Body::new(DrippingBody { pieces, size, pause, next, stalls });
        let all = room_for(1 << 20);
        let begin = Instant::now();
        let got = read(body, 1 << 20, Duration::from_secs(10), 8 << 10, &mut Room::new(&all)).await;
        assert_eq!(all.available_permits(), 1 << 10);
        (got.map(|b| b.into_vec().len()).map_err(|p| p.code), begin.elapsed())
    }

    /// The clock is the runtime's own and stands still while there is something to do, so these times are exact.
    #[tokio::test(start_paused = true)]
    async fn slow_lines_are_waited_for_and_stalled_ones_are_not() {
        // 16 KiB a second for 60 s.
        assert_eq!(sent(60, 16 << 10, 1000, false).await, (Ok(60 * (16 << 10)), Duration::from_secs(60)));
        // Nothing at all; and nothing any more, after 60 s that have earned two minutes.
        assert_eq!(sent(0, 0, 1000, true).await, (Err(Code::TooSlow), Duration::from_secs(10)));
        assert_eq!(sent(60, 16 << 10, 1000, true).await, (Err(Code::TooSlow), Duration::from_secs(70)));
        // One byte a second earns an eighth of a millisecond: it is over after the first ten seconds.
        let (got, after) = sent(1000, 1, 1000, false).await;
        assert_eq!(got, Err(Code::TooSlow));
        assert!(after < Duration::from_millis(10_010), "{after:?}");
    }

    #[tokio::test]
    async fn sizes_and_room() {
        let read_all = async |bytes: usize, most: usize, room: &mut Room| {
            let read = read(Body::from(vec![b'x'; bytes]), most, Duration::from_secs(10), 8 << 10, room).await;
            read.map(|b| b.into_vec().len()).map_err(|p| p.code)
        };
        let all = room_for(100 << 10);
        let (mut first, mut second) = (Room::new(&all), Room::new(&all));
        assert_eq!(read_all(70 << 10, 70 << 10, &mut first).await, Ok(70 << 10));
        assert_eq!(read_all((70 << 10) + 1, 70 << 10, &mut first).await, Err(Code::TooLarge));
        // The first still holds its room.
        assert_eq!(read_all(40 << 10, 70 << 10, &mut second).await, Err(Code::Busy));
        assert_eq!(read_all(30 << 10, 70 << 10, &mut second).await, Ok(30 << 10));
        drop((first, second));
        assert_eq!(all.available_permits(), 100);
    }

    #[test]
    fn blocks_read_back_what_was_pushed() {
        let bytes: Vec<u8> = (0..200_000u64).map(|i| (i * i % 251) as u8).collect();
        let mut blocks = Blocks::default();
        for piece in bytes.chunks(977) {
            blocks.push(piece);
        }
        let mut back = Vec::new();
        blocks.read_to_end(&mut back).unwrap();
        assert!(back == bytes && blocks.blocks.is_empty());
    }
}
