import { constants } from 'node:os'
import type { Terminal } from './terminal.ts'

/**
 * Runs work that Ctrl-C can abort. Ctrl-C aborts the signal; errors after that are ignored, and the program exits with
 * 130, as shells expect. A second Ctrl-C kills the process.
 */
export async function interruptible(terminal: Terminal, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const abort = new AbortController()
  const stop = () => abort.abort(new Error('interrupted'))
  process.once('SIGINT', stop)
  try {
    await work(abort.signal)
  } catch (thrown) {
    if (!abort.signal.aborted) throw thrown
  } finally {
    process.off('SIGINT', stop)
  }
  if (abort.signal.aborted) terminal.setExitCode(128 + constants.signals.SIGINT)
}
