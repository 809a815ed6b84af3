import { Failure } from '../failure.ts'

/**
 * Bounds what the bodies of all requests hold together, from before they are read until their answer. Large bodies
 * wait for slots and threads like small ones do, and a few hundred of them would be the memory of the machine.
 */
export function openBodyRoom(mostBytes: number) {
  let held = 0
  return {
    /** Counts bytes until the answer is called, once or more. Throws Failure `no_capacity` when there is no room. */
    hold(wanted: number): () => void {
      let bytes = wanted
      if (held > 0 && held + bytes > mostBytes)
        throw new Failure(
          'no_capacity',
          'The requests under way hold all the memory there is for them. Try again in a moment.',
          { retryAfterMs: 1_000 },
        )
      held += bytes
      return () => {
        held -= bytes
        bytes = 0
      }
    },
  }
}
export type BodyRoom = ReturnType<typeof openBodyRoom>
