/** The id in the address of a workflow that is not stored yet. */
export const newWorkflow = 'new'

/**
 * What this browser keeps of a workflow: the server stores no comments, and unsaved changes survive a reload. Signing
 * out removes it (`infer.person.`).
 */
export interface Draft {
  /** The version that the text began with; 0 for a workflow that was never saved. */
  version: number
  saved: string
  text: string
  /** The newest text without faults, which the graph shows while `text` has some. */
  sound?: string
}

/** Another token that signs in here when a session is over has drafts of its own. */
const keyOf = (token: string, id: string): string => `infer.person.workflow.${token}.${id}`

/** What this page has read or written last in the storage that all tabs share, by its key. */
const seen = new Map<string, string | null>()

/** Returns the draft of this tab, which a reload finds again; in a new tab the one that any tab has written last. */
export function readDraft(token: string, id: string): Draft | undefined {
  const key = keyOf(token, id)
  const shared = localStorage.getItem(key)
  const own = sessionStorage.getItem(key)
  // What another tab has written since is not this one's to remove.
  seen.set(key, own === null || own === shared ? shared : null)
  try {
    return (JSON.parse(own ?? shared ?? 'null') as Draft | null) ?? undefined
  } catch {
    return undefined
  }
}

/** Keeps a text; one that says no more than the server is not kept. Two tabs with the same workflow keep one each. */
export function keepDraft(token: string, id: string, draft: Draft, stored: string): void {
  if (draft.text === stored && draft.saved === stored) return dropDraft(token, id)
  const key = keyOf(token, id)
  const text = JSON.stringify(draft)
  try {
    sessionStorage.setItem(key, text)
    localStorage.setItem(key, text)
    seen.set(key, text)
  } catch {
    // The storage is full: the text lasts as long as the page.
  }
}

export function dropDraft(token: string, id: string): void {
  const key = keyOf(token, id)
  sessionStorage.removeItem(key)
  if (localStorage.getItem(key) === seen.get(key)) localStorage.removeItem(key)
}
