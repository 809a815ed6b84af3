import { constants } from 'node:os'
import type { Terminal } from './terminal.ts'

/**
 * Does work that Ctrl-C ends: the signal is aborted, whatever the work throws because of that is passed over, and the
 * program ends with 130 as a shell expects. A second Ctrl-C ends the process the hard way.
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
