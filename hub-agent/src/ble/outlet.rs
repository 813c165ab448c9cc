//! The bounded queue between the radio and its reader. Full, it lets go of the oldest and counts it; it never makes the radio wait.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::Heard;

/// Events, or devices of windows, that may wait: some 2 MB.
const CAPACITY: usize = 5_000;

pub fn channel() -> (HeardSender, HeardReceiver) {
    with_capacity(CAPACITY)
}

fn with_capacity(capacity: usize) -> (HeardSender, HeardReceiver) {
    let shared = Arc::new(Shared {
        queue: Mutex::new(Queue { items: VecDeque::new(), weight: 0, dropped: 0, closed: false }),
        arrived: Notify::new(),
        taken: Notify::new(),
        capacity,
    });
    (HeardSender(shared.clone()), HeardReceiver(shared))
}

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    arrived: Notify,
    taken: Notify,
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
        // Nothing that runs under the lock can leave the queue half changed.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn weight(heard: &Heard) -> usize {
    match heard {
        Heard::Event(_) => 1,
        Heard::Window(window) => window.devices.len().max(1),
    }
}

/// The radio's end. The reader sees the end of the stream when this is dropped.
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
        // The newest stays even when it alone is over the bound.
        while queue.weight > self.0.capacity && queue.items.len() > 1 {
            let lost = queue.items.pop_front().as_ref().map_or(0, weight);
            queue.weight -= lost;
            queue.dropped += lost as u64;
        }
        drop(queue);
        self.0.arrived.notify_one();
    }

    /// Waits until half of the queue is free: for sources that can wait, as a recorded trace can.
    pub async fn room(&self) {
        loop {
            let taken = self.0.taken.notified();
            {
                let queue = self.0.lock();
                if queue.weight <= self.0.capacity / 2 || queue.closed {
                    return;
                }
            }
            taken.await;
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
    /// All that waits, oldest first, as soon as there is anything; `None` once the radio has stopped and all was taken.
    /// Nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> Option<Vec<Heard>> {
        loop {
            let arrived = self.0.arrived.notified();
            {
                let mut queue = self.0.lock();
                if !queue.items.is_empty() {
                    queue.weight = 0;
                    let items = std::mem::take(&mut queue.items);
                    drop(queue);
                    self.0.taken.notify_one();
                    return Some(items.into());
                }
                if queue.closed {
                    return None;
                }
            }
            arrived.await;
        }
    }

    /// Events, and devices of windows, lost since the start because the reader was too slow.
    pub fn dropped(&self) -> u64 {
        self.0.lock().dropped
    }
}

impl Drop for HeardReceiver {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.taken.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::super::HeardWindow;
    use super::*;
    use hub_protocol::Timestamp;
    use hub_protocol::ble::{Advertisement, BleEvent};

    fn event(address: &str) -> Heard {
        Heard::Event(BleEvent {
            event_uuid: None,
            observed_at: Timestamp::from_micros(0),
            payload: Advertisement { address: address.into(), ..Advertisement::default() },
        })
    }

    #[tokio::test]
    async fn a_full_queue_lets_go_of_the_oldest_and_counts_it() {
        let (sender, mut receiver) = with_capacity(2);
        sender.send(vec![event("a"), event("b"), event("c")]);
        assert_eq!(receiver.dropped(), 1);
        assert_eq!(receiver.next().await, Some(vec![event("b"), event("c")]));
        sender.send(vec![event("d")]);
        drop(sender);
        assert_eq!(receiver.next().await, Some(vec![event("d")]), "what was heard before the end is not lost");
        assert_eq!(receiver.next().await, None);
        assert_eq!(receiver.dropped(), 1);
    }

    #[tokio::test]
    async fn a_source_that_can_wait_waits_for_the_reader() {
        let (sender, mut receiver) = with_capacity(2);
        sender.send(vec![event("a"), event("b")]);
        let (_, taken) = tokio::join!(sender.room(), receiver.next());
        assert_eq!(taken.map(|items| items.len()), Some(2));
        sender.send(vec![event("a"), event("b")]);
        drop(receiver);
        sender.room().await;
    }

    #[tokio::test]
    async fn an_empty_window_still_arrives() {
        let (sender, mut receiver) = with_capacity(2);
        let time = Timestamp::from_micros(0);
        let window = Heard::Window(HeardWindow { start: time, end: time, devices: Vec::new() });
        sender.send(vec![window.clone()]);
        assert_eq!(receiver.next().await, Some(vec![window]));
    }
}
