//! The bounded queue between the radio and its reader. When it is full, the oldest items are
//! dropped and counted; the radio never waits.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::types::Heard;

/// The most events, or devices of windows, that may wait: about 2 MB.
const CAPACITY: usize = 5_000;

pub fn channel() -> (HeardSender, HeardReceiver) {
    with_capacity(CAPACITY)
}

fn with_capacity(capacity: usize) -> (HeardSender, HeardReceiver) {
    let shared = Arc::new(Shared {
        queue: Mutex::new(Queue {
            items: VecDeque::new(),
            weight: 0,
            dropped: 0,
            closed: false,
        }),
        arrived: Notify::new(),
        read: Notify::new(),
        capacity,
    });
    (HeardSender(shared.clone()), HeardReceiver(shared))
}

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    arrived: Notify,
    read: Notify,
    capacity: usize,
}

#[derive(Debug)]
struct Queue {
    items: VecDeque<Heard>,
    weight: usize,
    dropped: u64,
    closed: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // No code under the lock can leave the queue half changed.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn weight(heard: &Heard) -> usize {
    match heard {
        Heard::Events(events) => events.len(),
        Heard::Window(window) => window.devices.len().max(1),
    }
}

/// The radio's end. When it is dropped, the reader sees the end of the stream.
#[derive(Debug)]
pub struct HeardSender(Arc<Shared>);

impl HeardSender {
    pub fn send(&self, heard: Vec<Heard>) {
        if heard.is_empty() {
            return;
        }
        let mut queue = self.0.lock();
        for item in heard {
            queue.weight += weight(&item);
            queue.items.push_back(item);
        }
        // The newest item stays, even if it alone exceeds the bound.
        while queue.weight > self.0.capacity && queue.items.len() > 1 {
            let lost = queue.items.pop_front().as_ref().map_or(0, weight);
            queue.weight -= lost;
            queue.dropped += lost as u64;
        }
        drop(queue);
        self.0.arrived.notify_one();
    }

    /// Waits until half of the queue is free: for sources that can wait, such as a recorded trace.
    pub async fn room(&self) {
        loop {
            let read = self.0.read.notified();
            {
                let queue = self.0.lock();
                if queue.weight <= self.0.capacity / 2 || queue.closed {
                    return;
                }
            }
            read.await;
        }
    }
}

impl Drop for HeardSender {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.arrived.notify_one();
    }
}

/// The reader's end.
#[derive(Debug)]
pub struct HeardReceiver(Arc<Shared>);

impl HeardReceiver {
    /// All waiting items, oldest first, as soon as there are any; `None` once the radio has stopped
    /// and everything was read. Nothing is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<Vec<Heard>> {
        loop {
            let arrived = self.0.arrived.notified();
            {
                let mut queue = self.0.lock();
                if !queue.items.is_empty() {
                    queue.weight = 0;
                    let items = std::mem::take(&mut queue.items);
                    drop(queue);
                    self.0.read.notify_one();
                    return Some(items.into());
                }
                if queue.closed {
                    return None;
                }
            }
            arrived.await;
        }
    }

    /// Events, and devices of windows, that were lost since the start because the reader was too
    /// slow.
    pub fn dropped(&self) -> u64 {
        self.0.lock().dropped
    }
}

impl Drop for HeardReceiver {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.read.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::super::types::HeardWindow;
    use super::*;
    use hub_protocol::Timestamp;
    use hub_protocol::ble::{Advertisement, BleEvent};

    fn event(address: &str) -> Heard {
        Heard::from(&BleEvent {
            event_uuid: None,
            observed_at: Timestamp::from_micros(0),
            traceparent: None,
            payload: Advertisement {
                address: address.into(),
                ..Advertisement::default()
            },
        })
    }

    #[tokio::test]
    async fn a_full_queue_drops_the_oldest_items_and_counts_them() {
        let (sender, mut receiver) = with_capacity(2);
        sender.send(vec![event("a"), event("b"), event("c")]);
        assert_eq!(receiver.dropped(), 1);
        assert_eq!(receiver.next().await, Some(vec![event("b"), event("c")]));
        sender.send(vec![event("d")]);
        drop(sender);
        assert_eq!(
            receiver.next().await,
            Some(vec![event("d")]),
            "items before the end are not lost"
        );
        assert_eq!(receiver.next().await, None);
        assert_eq!(receiver.dropped(), 1);
    }

    #[tokio::test]
    async fn a_source_can_wait_for_the_reader() {
        let (sender, mut receiver) = with_capacity(2);
        sender.send(vec![event("a"), event("b")]);
        let (_, read) = tokio::join!(sender.room(), receiver.next());
        assert_eq!(read.map(|items| items.len()), Some(2));
        sender.send(vec![event("a"), event("b")]);
        drop(receiver);
        sender.room().await;
    }

    #[tokio::test]
    async fn an_empty_window_is_delivered() {
        let (sender, mut receiver) = with_capacity(2);
        let time = Timestamp::from_micros(0);
        let window = Heard::Window(HeardWindow {
            start: time,
            end: time,
            devices: Vec::new(),
        });
        sender.send(vec![window.clone()]);
        assert_eq!(receiver.next().await, Some(vec![window]));
    }
}
