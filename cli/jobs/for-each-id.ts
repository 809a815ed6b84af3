import { exitCodeOf, failureOfThrown } from '../terminal/exit-codes.ts'
import type { Terminal } from '../terminal/terminal.ts'

/**
 * Runs work for each id, in order. A failure is printed and sets the exit code, and the other ids follow. Throws the
 * reason of an aborted signal.
 */
export async function forEachId(
  ids: readonly string[],
  terminal: Terminal,
  { json, signal }: { json: boolean | undefined; signal?: AbortSignal },
  work: (id: string) => Promise<void>,
): Promise<void> {
  for (const id of ids)
    try {
      await work(id)
    } catch (thrown) {
      signal?.throwIfAborted()
      const failure = failureOfThrown(thrown)
      terminal.failed(failure, json === true)
      terminal.setExitCode(exitCodeOf(failure))
    }
}
