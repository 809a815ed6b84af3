import { constants } from 'node:os'
import type { Terminal } from '../terminal.ts'

/** `cancel` is aborted by the first Ctrl-C, `leave` by the second. */
export interface Interrupts {
  cancel: AbortSignal
  leave: AbortSignal
}

/**
 * Does work that began something elsewhere: the first Ctrl-C asks for its end and is waited for, the second leaves at
 * once, and a third ends the process the hard way. In each case the program ends with 130, as a shell expects.
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
