/** Parts of a page that have a name or a meaning of their own. */
const parts = 'section, form, fieldset, table, ul, dialog, main, [role=tabpanel], [role=application], [tabindex]'

/**
 * Keeps the focus where it was when the element that has it disappears, such as the button that deletes a row: the
 * smallest part of the page that it was in gets it, so that the next Tab continues there and a screen reader says where.
 * Returns the function that ends it.
 */
export function keepFocus(): () => void {
  /** The element with the focus, and what it is in. */
  let path: Element[] = []
  const focused = ({ target }: FocusEvent) => {
    path = []
    for (let one = target instanceof Element ? target : null; one; one = one.parentElement) path.push(one)
  }
  const observer = new MutationObserver(() => {
    if (path.length === 0 || path[0]!.isConnected || document.activeElement !== document.body) return
    const left = path.find(one => one.isConnected && one.matches(parts)) ?? document.querySelector('main')
    path = []
    if (left instanceof HTMLElement) focus(left)
  })
  observer.observe(document.body, { childList: true, subtree: true })
  addEventListener('focusin', focused)
  return () => {
    observer.disconnect()
    removeEventListener('focusin', focused)
  }
}

function focus(part: HTMLElement): void {
  if (!part.hasAttribute('tabindex')) {
    part.tabIndex = -1
    part.addEventListener('blur', () => part.removeAttribute('tabindex'), { once: true })
  }
  part.focus({ preventScroll: true })
}
