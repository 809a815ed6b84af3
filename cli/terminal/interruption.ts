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

/** The first Ctrl-C aborts `cancel`, the second aborts `leave`. */
export interface Interrupts {
  cancel: AbortSignal
  leave: AbortSignal
}

/**
 * Runs work that started something on the server. The first Ctrl-C cancels it and waits for its end, the second stops
 * waiting, and a third kills the process. In each case the program exits with 130, as shells expect.
 */
export async function withInterrupts(
  terminal: Terminal,
  work: (interrupts: Interrupts) => Promise<void>,
): Promise<void> {
  const cancel = new AbortController()
  const leave = new AbortController()
  const interrupt = () => {
    if (!cancel.signal.aborted) return cancel.abort(new Error('interrupted'))
    process.off('SIGINT', interrupt)
    leave.abort(new Error('interrupted'))
  }
  process.on('SIGINT', interrupt)
  try {
    await work({ cancel: cancel.signal, leave: leave.signal })
  } catch (thrown) {
    if (!cancel.signal.aborted) throw thrown
  } finally {
    process.off('SIGINT', interrupt)
  }
  if (cancel.signal.aborted) terminal.setExitCode(128 + constants.signals.SIGINT)
}
