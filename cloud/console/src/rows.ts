//! Rows open where one clicks: a click in a row of a table is one on its subject, the link or button that
//! the row is about. Controls in the row keep their clicks, and text can be selected. The keyboard uses
//! the subject itself.

const CONTROLS = 'a, button, input, select, textarea, label, summary';

/** The subject of the row at a place that is no control. */
function subjectAt(target: EventTarget | null): HTMLElement | undefined {
  if (!(target instanceof Element)) return undefined;
  const row = target.closest('tr, [role="row"]');
  const control = target.closest(CONTROLS);
  if (!row || (control && row.contains(control))) return undefined;
  return row.querySelector<HTMLElement>('.subject') ?? undefined;
}

function isSelecting(row: Element | null): boolean {
  const selection = getSelection();
  return Boolean(row && selection && !selection.isCollapsed && selection.containsNode(row, true));
}

function open(event: MouseEvent, isElsewhere: boolean) {
  const subject = subjectAt(event.target);
  if (!subject || event.defaultPrevented || isSelecting(subject.closest('tr, [role="row"]'))) return;
  // Of a link, the browser opens a new tab or window as for a click on it.
  const { ctrlKey, metaKey, shiftKey, altKey } = event;
  const keys = isElsewhere ? { ctrlKey: true, metaKey: true } : { ctrlKey, metaKey, shiftKey, altKey };
  if (isElsewhere && !(subject instanceof HTMLAnchorElement)) return;
  subject.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true, ...keys }));
}

export function listenToRows() {
  addEventListener('click', (event) => {
    if (event.button === 0) open(event, false);
  });
  addEventListener('auxclick', (event) => {
    if (event.button === 1) open(event, true);
  });
  // Where a page scrolls by its middle button, the row opens instead.
  addEventListener('mousedown', (event) => {
    if (event.button === 1 && subjectAt(event.target) instanceof HTMLAnchorElement) event.preventDefault();
  });
}
