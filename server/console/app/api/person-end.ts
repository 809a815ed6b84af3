/** What must stop when the session of a person ends, such as answers that go on while another page is shown. */
const listeners = new Set<() => void>()

/** Calls the listener when the person has signed out, or the session has ended otherwise. */
export const onPersonEnd = (listener: () => void): void => void listeners.add(listener)

export function endPerson(): void {
  for (const listener of listeners) listener()
}
