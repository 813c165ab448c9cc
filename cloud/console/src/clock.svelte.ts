//! The time, for what is shown as "3 min ago": it moves every ten seconds, and only while the page is
//! seen.

class Clock {
  now = $state(Date.now());
}

export const clock = new Clock();

const tick = () => {
  if (!document.hidden) clock.now = Date.now();
};
setInterval(tick, 10_000);
document.addEventListener('visibilitychange', tick);
