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

export function readDraft(token: string, id: string): Draft | undefined {
  try {
    return (JSON.parse(localStorage.getItem(keyOf(token, id)) ?? 'null') as Draft | null) ?? undefined
  } catch {
    return undefined
  }
}

/** Keeps a text; one that says no more than the server is not kept. */
export function keepDraft(token: string, id: string, draft: Draft, stored: string): void {
  try {
    if (draft.text === stored && draft.saved === stored) localStorage.removeItem(keyOf(token, id))
    else localStorage.setItem(keyOf(token, id), JSON.stringify(draft))
  } catch {
    // The storage is full: the text lasts as long as the page.
  }
}

export const dropDraft = (token: string, id: string): void => localStorage.removeItem(keyOf(token, id))
