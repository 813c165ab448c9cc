//! How long the path to the service holds a request. A proxy or a router in between may end a
//! request that waits for longer than it likes. That is no failure of the service: the agent asks
//! the service to answer sooner, and tries a longer time now and then, since paths change.

use std::time::Duration;

use tokio::time::Instant;

/// How long the service is asked to hold a request where nothing is in the way.
pub const LONGEST: Duration = Duration::from_secs(55);
/// A path that holds requests for less is polled.
const SHORTEST: Duration = Duration::from_secs(4);
/// The pause between requests on such a path.
pub const POLL_EVERY: Duration = Duration::from_secs(8);
/// A request that ends sooner was refused, and not held.
pub const HELD_AT_LEAST: Duration = Duration::from_secs(1);

/// The part of the time of a cut that is asked for afterwards.
const MARGIN: f64 = 0.8;
/// How much longer a trial is than what works.
const TRIAL_FACTOR: f64 = 1.5;
const FIRST_TRIAL_AFTER: Duration = Duration::from_secs(60);
const LAST_TRIAL_AFTER: Duration = Duration::from_secs(3_600);

/// What is known of the path.
#[derive(Debug)]
pub struct PathHold {
    /// The time that has worked; None while the longest does.
    works: Option<Duration>,
    /// The longest time that was held since the last cut of a usual request.
    proven: Duration,
    /// A request was cut that had been held for as long before. A service that restarts does that
    /// once.
    is_suspected: bool,
    /// The time that worked and the longest one before the last cut, until the service answers.
    before_cut: Option<(Option<Duration>, Duration)>,
    trial_after: Duration,
    trial_at: Instant,
}

impl PathHold {
    pub fn new(now: Instant) -> Self {
        Self {
            works: None,
            proven: Duration::ZERO,
            is_suspected: false,
            before_cut: None,
            trial_after: FIRST_TRIAL_AFTER,
            trial_at: now,
        }
    }

    /// How long the service is to hold the next request; zero where the path holds none.
    pub fn next(&self, now: Instant) -> Duration {
        let Some(works) = self.works else {
            return LONGEST;
        };
        let asked = match now >= self.trial_at {
            true => works.mul_f64(TRIAL_FACTOR).max(SHORTEST),
            false => works,
        };
        match asked.min(LONGEST) {
            asked if asked < SHORTEST => Duration::ZERO,
            asked => Duration::from_secs(asked.as_secs()),
        }
    }

    /// The time that works, if it is not the longest.
    pub fn limit(&self) -> Option<Duration> {
        self.works
    }

    /// The service answered a request that was held for so long.
    pub fn held(&mut self, elapsed: Duration, now: Instant) {
        self.is_suspected = false;
        self.before_cut = None;
        self.proven = self.proven.max(elapsed);
        let Some(works) = self.works else { return };
        if elapsed > works + HELD_AT_LEAST {
            self.works = Some(elapsed).filter(|works| *works + HELD_AT_LEAST < LONGEST);
            self.trial_after = FIRST_TRIAL_AFTER;
            self.trial_at = now + self.trial_after;
        }
    }

    /// The path ended a request after so long that the service was asked to hold for longer.
    /// Returns whether this is news of the path.
    pub fn cut(&mut self, elapsed: Duration, now: Instant) -> bool {
        let is_trial = self.works.is_some_and(|works| elapsed > works);
        if is_trial {
            self.trial_after = (self.trial_after * 2).min(LAST_TRIAL_AFTER);
            self.trial_at = now + self.trial_after;
            return false;
        }
        // Requests were held for longer: the service may have restarted.
        if elapsed <= self.proven && !self.is_suspected {
            self.is_suspected = true;
            return false;
        }
        self.is_suspected = false;
        self.before_cut = Some((self.works, self.proven));
        self.proven = Duration::ZERO;
        self.works = Some(elapsed.mul_f64(MARGIN));
        self.trial_after = FIRST_TRIAL_AFTER;
        self.trial_at = now + self.trial_after;
        true
    }

    /// The service cannot be reached. If a request was cut just before, the service ended it and
    /// not the path.
    pub fn away(&mut self) {
        if let Some((works, proven)) = self.before_cut.take() {
            (self.works, self.proven) = (works, proven);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Follows a path that cuts requests after `cut` for so many seconds. Returns the share of the
    /// time in which a request was held, and the longest time without one.
    fn follow(hold: &mut PathHold, now: &mut Instant, cut: Duration, secs: u64) -> (f64, Duration) {
        let (begun, mut held, mut gap) = (*now, Duration::ZERO, Duration::ZERO);
        while *now - begun < SECOND * u32::try_from(secs).unwrap() {
            let asked = hold.next(*now);
            if asked.is_zero() {
                *now += POLL_EVERY;
                gap = gap.max(POLL_EVERY);
            } else if asked < cut {
                *now += asked;
                held += asked;
                hold.held(asked, *now);
            } else {
                *now += cut;
                held += cut;
                hold.cut(cut, *now);
            }
        }
        (held.as_secs_f64() / (*now - begun).as_secs_f64(), gap)
    }

    #[test]
    fn a_path_is_learned_and_tried_again() {
        let mut now = Instant::now();
        let mut hold = PathHold::new(now);
        assert_eq!(hold.next(now), LONGEST);
        // Free: nothing changes.
        follow(&mut hold, &mut now, SECOND * 3_600, 600);
        assert_eq!((hold.next(now), hold.limit()), (LONGEST, None));
        // From now on the path cuts after ten seconds. A request is always held.
        assert_eq!(
            follow(&mut hold, &mut now, SECOND * 10, 3_600).1,
            Duration::ZERO
        );
        assert_eq!(hold.limit(), Some(SECOND * 8));
        // A faster one, a slower one, and one that is free again.
        follow(&mut hold, &mut now, SECOND * 6, 600);
        assert!(hold.next(now) <= SECOND * 5);
        follow(&mut hold, &mut now, SECOND * 30, 4 * 3_600);
        let works = hold.limit().unwrap();
        assert!(works > SECOND * 15 && works < SECOND * 30, "{works:?}");
        follow(&mut hold, &mut now, SECOND * 3_600, 8 * 3_600);
        assert_eq!(hold.limit(), None);
    }

    #[test]
    fn a_path_that_holds_nothing_is_polled_and_tried_again() {
        let mut now = Instant::now();
        let mut hold = PathHold::new(now);
        let (_, gap) = follow(&mut hold, &mut now, SECOND * 2, 600);
        assert_eq!((hold.next(now), gap), (Duration::ZERO, POLL_EVERY));
        follow(&mut hold, &mut now, SECOND * 3_600, 4 * 3_600);
        assert_eq!(hold.limit(), None);
    }

    /// A service that restarts ends all requests at once.
    #[test]
    fn one_cut_of_what_was_held_before_changes_nothing() {
        let mut now = Instant::now();
        let mut hold = PathHold::new(now);
        follow(&mut hold, &mut now, SECOND * 3_600, 120);
        for _ in 0..3 {
            assert!(!hold.cut(SECOND * 20, now));
            assert_eq!(hold.next(now), LONGEST);
            hold.held(LONGEST, now);
        }
        assert!(!hold.cut(SECOND * 10, now));
        assert!(hold.cut(SECOND * 10, now), "twice in a row");
    }

    #[test]
    fn a_cut_by_a_service_that_is_away_then_changes_nothing() {
        let now = Instant::now();
        let mut hold = PathHold::new(now);
        assert!(hold.cut(SECOND * 20, now), "nothing was held for as long");
        hold.away();
        assert_eq!((hold.limit(), hold.next(now)), (None, LONGEST));
        // A service that answers in between was not away at the time of the cut.
        hold.cut(SECOND * 20, now);
        hold.held(SECOND * 16, now);
        hold.away();
        assert_eq!(hold.limit(), Some(SECOND * 16));
    }

    /// Trials cost nothing, and become rare.
    #[test]
    fn trials_become_rare() {
        let mut now = Instant::now();
        let mut hold = PathHold::new(now);
        follow(&mut hold, &mut now, SECOND * 10, 60);
        let mut cuts = 0;
        let end = now + Duration::from_secs(6 * 3_600);
        while now < end {
            let asked = hold.next(now);
            now += asked.min(SECOND * 10);
            match asked < SECOND * 10 {
                true => hold.held(asked, now),
                false => {
                    hold.cut(SECOND * 10, now);
                    cuts += 1;
                }
            }
        }
        assert!(cuts < 15, "{cuts}");
    }
}
