//! Short messages about what was done: "The code was revoked". Failures stay where they happened.

export interface Notice {
  id: number;
  text: string;
  tone: 'good' | 'bad';
}

class Notices {
  list = $state<Notice[]>([]);
}

export const notices = new Notices();
let last = 0;

export function notify(text: string, tone: Notice['tone'] = 'good') {
  const id = (last += 1);
  notices.list = [...notices.list.slice(-2), { id, text, tone }];
  setTimeout(() => dismiss(id), 8000);
}

export function dismiss(id: number) {
  notices.list = notices.list.filter((notice) => notice.id !== id);
}
